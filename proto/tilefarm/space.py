"""A search space as data: finite variables and named constraints over them.

The compiler makes it, the tuner searches it, and neither knows the other. Kinds of constraint
follow Heron (ASPLOS 2023, section 4): `Prod`, `Sum`, `Le` and `Select` are its PROD, SUM, LE and
SELECT; its IN is a variable's domain, its EQ a `Sum` of one term. `Table` is for what only a list
can say, `Largest` for times that overlap. Variables are tunable (chosen by the search) or derived
(fixed by the tunables through constraints).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tilefarm.digest import Digest, canonical_json

Point: TypeAlias = Mapping[str, int]
"""A value for every variable of a space, tunable and derived."""

ESTIMATE: Final = "predicted_quarter_cycles"
"""The derived variable that says what a point costs, in quarters of a cycle, before it is measured.

Spaces of machines whose time the compiler cannot tell have none.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One integer unknown.

    `domain` is sorted; a derived variable may leave it empty (any value >= 0).

    `labels` names the values of a choice (for example loop orders) for people; empty for numbers.
    """

    name: str
    domain: tuple[int, ...] = ()
    tunable: bool = True
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prod:
    """product == coefficient * Π factors"""

    name: str
    product: str
    factors: tuple[str, ...]
    coefficient: int = 1
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """total == constant + Σ coefficient_i * term_i"""

    name: str
    total: str
    terms: tuple[tuple[int, str], ...]
    constant: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Le:
    """left <= bound, where bound is a number or another variable"""

    name: str
    left: str
    bound: int | str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """value == options[choice]: the variable named at the position that `choice` holds"""

    name: str
    value: str
    choice: str
    options: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest:
    """value == the largest of the options"""

    name: str
    value: str
    options: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """(variables...) is one of `rows`"""

    name: str
    variables: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    why: str = ""


Constraint: TypeAlias = Prod | Sum | Le | Select | Largest | Table


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace:
    """What a search may choose for one workload on one target, and what makes a choice valid.

    Every point that satisfies the constraints compiles, runs and is right; that is the compiler's
    promise. `default` is a valid point: the plain schedule that nothing was tuned in.
    `version` changes when points of old records would mean something else.
    """

    name: str
    version: int
    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    default: tuple[tuple[str, int], ...]

    @property
    def tunables(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.tunable)

    @property
    def digest(self) -> Digest:
        return Digest.of(self.to_json().encode())

    def to_json(self) -> str:
        def row(c: Constraint) -> dict[str, object]:
            fields = {f: getattr(c, f) for f in c.__dataclass_fields__}
            return {"kind": type(c).__name__, **fields}

        return canonical_json(
            {
                "name": self.name,
                "version": self.version,
                "variables": [
                    {"name": v.name, "domain": v.domain, "tunable": v.tunable, "labels": v.labels}
                    for v in self.variables
                ],
                "constraints": [row(c) for c in self.constraints],
                "default": self.default,
            }
        )


def violations(space: SearchSpace, point: Point) -> list[str]:
    """Names of the constraints (and `domain:variable`) that a full point breaks; empty if valid."""
    broken = [
        f"domain:{v.name}" for v in space.variables if v.domain and point[v.name] not in v.domain
    ]
    return broken + [c.name for c in space.constraints if not holds(c, point)]


def holds(constraint: Constraint, point: Point) -> bool:
    """Whether a full point satisfies one constraint."""
    match constraint:
        case Prod(product=product, factors=factors, coefficient=value):
            for factor in factors:
                value *= point[factor]
            return point[product] == value
        case Sum(total=total, terms=terms, constant=constant):
            return point[total] == constant + sum(k * point[v] for k, v in terms)
        case Le(left=left, bound=bound):
            return point[left] <= (point[bound] if isinstance(bound, str) else bound)
        case Select(value=value_name, choice=choice, options=options):
            at = point[choice]
            return 0 <= at < len(options) and point[value_name] == point[options[at]]
        case Largest(value=value_name, options=options):
            return point[value_name] == max(point[option] for option in options)
        case Table(variables=variables, rows=rows):
            return tuple(point[v] for v in variables) in rows
