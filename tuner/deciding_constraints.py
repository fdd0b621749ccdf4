"""Which constraints of a space decide whether a point is valid; the others only compute values.

Most constraints of a convolution compute: its estimate, and what that is made of. A constraint that
computes decides nothing if it has a result whatever its inputs are, and if no constraint that
decides needs the result. Every valid choice of what is left then is one valid point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilefarm.space import Constraint, Largest, Le, Prod, SearchSpace, Select, Sum, Table

from tuner.functional_constraints import variables_of
from tuner.propagate import FAR
from tuner.search_plan import SearchPlan
from tuner.sign_proof import Definition, SignProof


@dataclass(frozen=True, slots=True)
class DecidingConstraints:
    """The constraints that decide, in the order in which they can be computed, and those they need.

    Attributes:
        space: the variables and constraints that are left.
        may_fail: ids of the constraints of it that may refute a point; the others compute for them.
    """

    space: SearchSpace
    may_fail: frozenset[int]


def deciding_constraints(space: SearchSpace) -> DecidingConstraints:
    """What decides in a space."""
    values = _PossibleValues(space)
    needed: set[str] = set()
    kept: list[Constraint] = []
    may_fail: set[int] = set()
    for constraint in reversed(values.plan.evaluated):
        outputs = values.plan.outputs(constraint)
        fails = id(constraint) in values.may_fail
        if fails or needed.intersection(outputs):
            needed.update(variables_of(constraint))
            kept.append(constraint)
            may_fail.update([id(constraint)] * fails)
    computed = {v for c in values.plan.evaluated for v in values.plan.outputs(c)}
    variables = [v for v in space.variables if v.name in needed or v.name not in computed]
    constraints = tuple(reversed(kept))
    left = replace(space, variables=tuple(variables), constraints=constraints, default=())
    return DecidingConstraints(left, frozenset(may_fail))


class _PossibleValues:
    """What values variables may have by their inputs alone, and which constraints may fail then.

    Nothing is concluded backwards, from a constraint to its inputs: it would prove itself.
    """

    def __init__(self, space: SearchSpace) -> None:
        self.plan = SearchPlan(space)
        self._domains = {v.name: frozenset(v.domain) for v in space.variables}
        self._sets = {name: domain for name, domain in self._domains.items() if domain}
        self._bounds = {v.name: (0.0, FAR) for v in space.variables}
        self._bounds |= {name: (min(domain), max(domain)) for name, domain in self._sets.items()}
        definitions: dict[str, Definition] = {}
        self._signs = SignProof(definitions, self._bounds)
        self.may_fail = set[int]()
        for constraint in self.plan.evaluated:
            outputs = self.plan.outputs(constraint)
            if not self._always_holds(constraint, outputs):
                self.may_fail.add(id(constraint))
            match constraint:
                case (
                    Sum(total=value)
                    | Prod(product=value)
                    | Select(value=value)
                    | Largest(value=value)
                ) if outputs == (value,):
                    definitions[value] = constraint
                case _:
                    pass

    def _always_holds(self, constraint: Constraint, outputs: Sequence[str]) -> bool:
        match constraint:
            case Le(left=left, bound=bound):
                least = self._bounds[bound][0] if isinstance(bound, str) else bound
                return self._bounds[left][1] <= least
            case Table():
                return self._looked_up(constraint, outputs)
            case Select(value=value, choice=choice, options=options) if outputs:
                return self._selected(value, choice, options)
            case Largest(value=value, options=options) if outputs:
                ends = [self._bounds[option] for option in options]
                return self._computed(value, max(e[0] for e in ends), max(e[1] for e in ends))
            case Prod(product=product) if outputs == (product,):
                return self._multiplied(constraint)
            case Sum(total=total) if outputs == (total,):
                return self._added(constraint)
            case _:
                return False

    def _looked_up(self, table: Table, outputs: Sequence[str]) -> bool:
        given = [i for i, v in enumerate(table.variables) if v not in outputs]
        sets = [self._sets.get(table.variables[i]) for i in given]
        rows = {
            r
            for r in table.rows
            if all(s is None or r[i] in s for i, s in zip(given, sets, strict=True))
        }
        is_total = None not in sets and len(rows) == math.prod(len(s or ()) for s in sets)
        for i, name in enumerate(table.variables):
            if name in outputs:
                is_total &= self._in_domain(name, frozenset(r[i] for r in rows))
        return is_total

    def _selected(self, value: str, choice: str, options: Sequence[str]) -> bool:
        reached = self._sets.get(choice, frozenset(range(-1, len(options))))
        chosen = [options[at] for at in sorted(reached) if 0 <= at < len(options)]
        in_range = len(chosen) == len(reached)
        sets = [self._sets.get(option) for option in chosen]
        if None not in sets:
            return self._in_domain(value, frozenset().union(*[s or () for s in sets])) and in_range
        ends = [self._bounds[option] for option in chosen]
        return self._computed(value, min(e[0] for e in ends), max(e[1] for e in ends)) and in_range

    def _multiplied(self, c: Prod) -> bool:
        least = most = float(c.coefficient)
        for low, high in [self._bounds[f] for f in c.factors]:
            if low < 0:
                return False
            least, most = least * low, min(most * high, FAR)
        return c.coefficient >= 0 and self._computed(c.product, least, most)

    def _added(self, c: Sum) -> bool:
        ends = [[k * end for end in self._bounds[v]] for k, v in c.terms]
        least = c.constant + sum(min(e) for e in ends)
        most = min(c.constant + sum(max(e) for e in ends), FAR)
        if least < 0 and self._signs.never_negative(c):
            least = 0.0
        return self._computed(c.total, least, most)

    def _computed(self, name: str, least: float, most: float) -> bool:
        """Takes note of the bounds of a result; whether all between them is allowed."""
        if self._domains[name]:
            return False
        self._bounds[name] = (max(least, 0.0), most)
        return least >= 0

    def _in_domain(self, name: str, values: frozenset[int]) -> bool:
        """Takes note of the values of a result; whether all of them are allowed."""
        domain = self._domains[name]
        allowed = values & domain if domain else frozenset(v for v in values if v >= 0)
        self._sets[name] = allowed
        if allowed:
            self._bounds[name] = (min(allowed), max(allowed))
        return len(allowed) == len(values)
