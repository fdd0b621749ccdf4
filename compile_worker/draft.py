"""A draft of a search space: variables, and constraints in an order that computes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import index
from typing import Final

from tilefarm.space import (
    Constraint,
    Largest,
    Le,
    Point,
    Prod,
    SearchSpace,
    Select,
    Sum,
    Table,
    Variable,
    holds,
)

MOST_VALUES: Final = 1 << 12
"""Of one variable: the search keeps tables over them."""

LARGEST: Final = 1 << 31
"""Value of a variable: the search counts in 64 bits, and multiplies values of two."""


class Emptied(Exception):
    """A constraint leaves no values: its name, and why it is there."""


class Draft:
    """Collects the variables and constraints of one space.

    Every derived variable is defined by the first constraint that mentions it, from variables that
    are there already: one walk over `constraints` computes all of them.
    """

    def __init__(self) -> None:
        self._variables: dict[str, Variable] = {}
        self._constraints: list[Constraint] = []
        self._broken: Counter[tuple[str, str]] = Counter()

    def tunable(self, name: str, domain: Iterable[int], labels: Sequence[str] = ()) -> str:
        """A variable that the search chooses; with one value it is a constant.

        Raises:
            ValueError: it cannot be chosen: it has no values, or too many, or too large ones, or
                another number of labels.
            TypeError: a value is no integer.
        """
        values = tuple(sorted({index(value) for value in islice(domain, MOST_VALUES + 1)}))
        _require_choice(name, values, labels)
        if len(values) == 1:
            return self.constant(name, values[0])
        return self._add(Variable(name=name, domain=values, labels=tuple(labels)))

    def constant(self, name: str, value: int) -> str:
        """A variable with one value."""
        return self._add(Variable(name=name, domain=(value,), tunable=False))

    def prod(self, name: str, *factors: str, coefficient: int = 1, why: str = "") -> str:
        """A new variable: coefficient * Π factors."""
        self._add(Variable(name=name, tunable=False))
        return self._require(
            name,
            Prod(
                name=f"prod_{name}",
                product=name,
                factors=factors,
                coefficient=coefficient,
                why=why,
            ),
        )

    def total(self, name: str, terms: Mapping[str, int], *, constant: int = 0) -> str:
        """A new variable: constant + Σ coefficient * term."""
        self._add(Variable(name=name, tunable=False))
        pairs = tuple((coefficient, term) for term, coefficient in terms.items())
        rule = Sum(name=f"sum_{name}", total=name, terms=pairs, constant=constant)
        return self._require(name, rule)

    def select(
        self, name: str, choice: str, options: Sequence[str], *, domain: Iterable[int] = ()
    ) -> str:
        """A new variable: the option at the position that `choice` holds.

        A table can have it among its keys if it has a `domain`.
        """
        self._add(Variable(name=name, domain=tuple(domain), tunable=False))
        rule = Select(name=f"select_{name}", value=name, choice=choice, options=tuple(options))
        return self._require(name, rule)

    def largest(self, name: str, options: Sequence[str]) -> str:
        """A new variable: the largest of the options."""
        self._add(Variable(name=name, tunable=False))
        rule = Largest(name=f"largest_{name}", value=name, options=tuple(options))
        return self._require(name, rule)

    def table(
        self,
        name: str,
        keys: Sequence[str],
        values: Sequence[str],
        rows: Iterable[tuple[int, ...]],
        *,
        why: str = "",
    ) -> None:
        """Rows of known variables `keys` and of new variables `values` that they determine."""
        listed = self._possible(name, keys, rows, why)
        for at, key in enumerate(keys):
            self._narrow(key, {row[at] for row in listed})
        for at, value in enumerate(values, start=len(keys)):
            domain = tuple(sorted({row[at] for row in listed}))
            self._add(Variable(name=value, domain=domain, tunable=False))
        rule = Table(name=name, variables=(*keys, *values), rows=listed, why=why)
        self._require(name, rule)

    def require_rows(
        self, name: str, keys: Sequence[str], rows: Iterable[tuple[int, ...]], *, why: str = ""
    ) -> None:
        """Known variables take the values of one of the rows."""
        listed = self._possible(name, keys, rows, why)
        for at, key in enumerate(keys):
            self._narrow(key, {row[at] for row in listed})
        self._require(name, Table(name=name, variables=tuple(keys), rows=listed, why=why))

    def allows(self, point: Point) -> bool:
        """Whether the tables that speak of variables of `point` only list them."""
        return all(
            tuple(point[name] for name in table.variables) in table.rows
            for table in self._constraints
            if isinstance(table, Table) and all(name in point for name in table.variables)
        )

    def at_most(self, name: str, left: str, bound: int | str, *, why: str = "") -> None:
        """`left` <= `bound`, a number or another variable."""
        self._require(name, Le(name=name, left=left, bound=bound, why=why))

    def space(self, name: str, version: int, default: Point) -> SearchSpace:
        """The space, with `default` giving at least the tunables' values."""
        full = complete(self._constraints, self._variables.values(), default)
        return SearchSpace(
            name=name,
            version=version,
            variables=tuple(self._variables.values()),
            constraints=tuple(self._constraints),
            default=tuple(sorted(full.items())),
        )

    def completed(self, tunables: Point) -> dict[str, int]:
        """A value for every variable; see `complete`."""
        return complete(self._constraints, self._variables.values(), tunables)

    def domain(self, name: str) -> tuple[int, ...]:
        """The values of a variable."""
        return self._variables[name].domain

    @property
    def tunables(self) -> tuple[str, ...]:
        """The names of what the search chooses."""
        return tuple(each.name for each in self._variables.values() if each.tunable)

    def has(self, name: str) -> bool:
        """Whether there is a variable of that name."""
        return name in self._variables

    def lists(self, name: str, point: Point) -> bool:
        """Whether the table of this name has a row with the values of `point`."""
        table = next(c for c in self._constraints if isinstance(c, Table) and c.name == name)
        at = [table.variables.index(variable) for variable in point]
        values = list(point.values())
        return any([row[i] for i in at] == values for row in table.rows)

    def holds(self, point: Point) -> bool:
        """Whether a full point satisfies every constraint; remembers what it breaks."""
        broken = next((rule for rule in self._constraints if not holds(rule, point)), None)
        if broken is not None:
            self._broken[broken.name, broken.why] += 1
        return broken is None

    @property
    def blamed(self) -> tuple[str, str]:
        """The constraint that most of the points broke that did not hold, and why it is there."""
        return max(self._broken, key=self._broken.__getitem__, default=("", ""))

    def _possible(
        self, name: str, keys: Sequence[str], rows: Iterable[tuple[int, ...]], why: str
    ) -> tuple[tuple[int, ...], ...]:
        """Rows whose known variables have values of their domains."""
        found = tuple(rows)
        columns = zip(*found, strict=True)
        for at, (key, column) in enumerate(zip(keys, columns, strict=False)):
            allowed = set(self._variables[key].domain)
            if not allowed.issuperset(column):
                found = tuple([row for row in found if row[at] in allowed])
        if not found:
            raise Emptied(name, why)
        return found

    def _narrow(self, name: str, values: set[int]) -> None:
        """Take values that no row lists out of a variable's domain."""
        old = self._variables[name]
        kept = tuple(value for value in old.domain if value in values)
        tunable = old.tunable and len(kept) > 1
        self._variables[name] = replace(old, domain=kept, tunable=tunable)

    def _add(self, variable: Variable) -> str:
        if variable.name in self._variables:
            raise ValueError(f"there already is a variable {variable.name}")
        self._variables[variable.name] = variable
        return variable.name

    def _require(self, value: str, constraint: Constraint) -> str:
        self._constraints.append(constraint)
        return value


def _require_choice(name: str, values: Sequence[int], labels: Sequence[str]) -> None:
    if not isinstance(name, str) or not name.isprintable() or name.split() != [name]:
        raise ValueError(f"{name!r} is no name of a variable")
    if not values:
        raise ValueError(f"{name} has no values to choose from")
    if len(values) > MOST_VALUES:
        raise ValueError(f"{name} has more than {MOST_VALUES} values to choose from")
    if max(abs(values[0]), abs(values[-1])) > LARGEST:
        raise ValueError(f"{name} has values beyond {LARGEST}")
    if labels and len(labels) < len(values):
        raise ValueError(f"{name} has {len(labels)} labels for {len(values)} values")


def complete(
    constraints: Iterable[Constraint], variables: Iterable[Variable], tunables: Point
) -> dict[str, int]:
    """Tunables, constants, and what the constraints derive from them in one walk.

    A combination that a table does not list gives its derived variables the value -1: such a point
    is not valid, and `violations` names the table.
    """
    known = {v.name: v.domain[0] for v in variables if not v.tunable and len(v.domain) == 1}
    known.update(tunables)
    for constraint in constraints:
        match constraint:
            case Prod(product=name, factors=factors, coefficient=value) if name not in known:
                for factor in factors:
                    value *= known[factor]
                known[name] = value
            case Sum(total=name, terms=terms, constant=constant) if name not in known:
                known[name] = constant + sum(k * known[v] for k, v in terms)
            case Select(value=name, choice=choice, options=options) if name not in known:
                known[name] = known[options[known[choice]]] if known[choice] >= 0 else -1
            case Largest(value=name, options=options) if name not in known:
                known[name] = max(known[option] for option in options)
            case Table(variables=names, rows=rows):
                _look_up(known, names, rows)
    return known


def _look_up(
    known: dict[str, int], names: tuple[str, ...], rows: tuple[tuple[int, ...], ...]
) -> None:
    """Set the unknown columns from the first row that agrees with the known ones."""
    fixed = [at for at, name in enumerate(names) if name in known]
    if len(fixed) == len(names):
        return
    wanted = [known[names[at]] for at in fixed]
    found = next((row for row in rows if [row[at] for at in fixed] == wanted), None)
    for at, name in enumerate(names):
        if name not in known:
            known[name] = -1 if found is None else found[at]
