"""What a search branches over, variable by variable, and what follows from each choice.

The order of the variables and the propagators of every level are worked out once per space.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from tilefarm.space import Constraint, Largest, Prod, SearchSpace, Sum

from tuner.functional_constraints import (
    FunctionalConstraint,
    Signs,
    functional_constraints,
    variables_of,
)
from tuner.propagate import Floats, Narrow, narrower


@dataclass(frozen=True, slots=True)
class Effect:
    """What follows where variables were fixed: what to narrow, and whose membership to test."""

    narrows: tuple[Narrow, ...]
    members: tuple[tuple[int, Floats], ...] = ()


@dataclass(frozen=True, slots=True)
class BranchLevel:
    """Branching over one variable: its values, what follows from each, and what is known then."""

    variable: int
    values: Floats
    effect: Effect
    known: frozenset[str]


class SearchPlan:
    """How one space is searched.

    Attributes:
        evaluated: the constraints in an order in which they compute, those last that only check.
    """

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._constraints = constraints = space.constraints
        self.index = {v.name: i for i, v in enumerate(space.variables)}
        self._values = {v.name: np.asarray(v.domain, dtype=np.float64) for v in space.variables}
        self._variables = {id(c): variables_of(c) for c in constraints}
        self._beside: dict[str, list[frozenset[str]]] = {name: [] for name in self.index}
        """By variable: the others of each constraint that speaks of it."""
        for variables in map(frozenset, self._variables.values()):
            for name in variables:
                self._beside[name].append(variables - {name})
        self._signs = Signs.of(space)
        self._narrows: dict[
            tuple[int, tuple[bool, ...], tuple[str, ...] | None], Narrow | None
        ] = {}
        computed_from = {v.name for v in space.variables if v.tunable or len(v.domain) == 1}
        evaluation = functional_constraints(constraints, computed_from, self._signs)
        self._outputs = {id(d.constraint): d.fixes for d in evaluation}
        self.evaluated = (
            *(d.constraint for d in evaluation),
            *(c for c in self._constraints if id(c) not in self._outputs),
        )
        self._pruning = self._constraints_that_prune()

    def outputs(self, constraint: Constraint) -> tuple[str, ...]:
        """The variables that a constraint computes where all tunables are known."""
        return self._outputs.get(id(constraint), ())

    def that_prune(self) -> tuple[Constraint, ...]:
        """The constraints that lead to a limit; the others only compute what nobody limits."""
        return tuple([c for c in self._constraints if id(c) in self._pruning])

    def before_any_choice(self) -> tuple[tuple[list[int], Narrow], ...]:
        """What each constraint says where only constants are known, and of which variables.

        Arithmetic that only computes what nobody limits is left to the choices, if there are any.
        """
        constants = {v.name for v in self._space.variables if len(v.domain) == 1}
        is_choice = any(v.name not in constants for v in self._space.tunables)
        return tuple(
            ([self.index[v] for v in self._variables[id(c)]], narrow)
            for c in self.evaluated
            if id(c) in self._pruning or not (is_choice and isinstance(c, (Prod, Sum, Largest)))
            for narrow in self._narrow(c, constants)
        )

    def all_at_once(self) -> Effect | None:
        """What the constraints say where all tunables are known: each computes, or checks.

        None when some derived variable does not follow from the tunables.
        """
        known = {v.name for v in self._space.variables if v.tunable or len(v.domain) == 1}
        narrows, members = list[Narrow](), list[tuple[int, Floats]]()
        for constraint in self.evaluated:
            narrows += self._narrow(constraint, known)
            known.update(self._outputs.get(id(constraint), ()))
        if not known.issuperset(self.index):
            return None
        for v in self._space.variables:
            if v.domain and not v.tunable:
                members.append((self.index[v.name], self._values[v.name]))
        return Effect(tuple(narrows), tuple(members))

    def levels(self, order: Sequence[str] = ()) -> tuple[BranchLevel, ...]:
        """The levels: tunables first, then derived variables that nothing fixes.

        Of those that wait the first in `order` is next; if none is in it, the most urgent one.
        """
        known = {v.name for v in self._space.variables if len(v.domain) == 1}
        levels, unsettled = list[BranchLevel](), self._constraints
        for pool in (
            [v.name for v in self._space.variables if v.tunable],
            [v.name for v in self._space.variables if not v.tunable and v.domain],
        ):
            while waiting := [v for v in pool if v not in known]:
                name = next((v for v in order if v in waiting), "")
                name = name or max(waiting, key=lambda v: self._urgency(v, known))
                fixed = functional_constraints(unsettled, known | {name}, self._signs)
                after = known | {name} | {v for d in fixed for v in d.fixes}
                levels.append(self._level(name, known, after, fixed))
                known = after
                unsettled = tuple(
                    [c for c in unsettled if not known.issuperset(self._variables[id(c)])]
                )
        return tuple(levels)

    def _urgency(self, name: str, known: Collection[str]) -> tuple[int, int, int]:
        """Prefer what closes constraints, then what touches known variables, then few values."""
        closed = touched = 0
        for others in self._beside[name]:
            open_count = len(others.difference(known))
            closed += open_count <= 1
            touched += open_count < len(others)
        return closed, touched, -len(self._values[name])

    def _level(
        self,
        name: str,
        before: Collection[str],
        after: Collection[str],
        fixed: Sequence[FunctionalConstraint],
    ) -> BranchLevel:
        """What follows from fixing `name`: variables, then what is closed by it, then bounds."""
        new = set(after) - set(before)
        narrows, known, done = list[Narrow](), {*before, name}, set[int]()
        for functional in fixed:
            if new.intersection(functional.fixes):
                narrows += self._narrow(functional.constraint, known)
                known.update(functional.fixes)
                done.add(id(functional.constraint))
        for constraint in self.evaluated:
            variables = self._variables[id(constraint)]
            if (
                id(constraint) not in done
                and new.intersection(variables)
                and known.issuperset(variables)
            ):
                narrows += self._narrow(constraint, known)
        narrows += self._bounds(new, known)
        members = [
            (self.index[v], self._values[v]) for v in sorted(new - {name}) if len(self._values[v])
        ]
        return BranchLevel(
            self.index[name],
            self._values[name],
            Effect(tuple(narrows), tuple(members)),
            frozenset(after),
        )

    def _bounds(self, new: Collection[str], known: Collection[str]) -> list[Narrow]:
        """Propagators of constraints that still have open variables and that the change reaches.

        In the order of evaluation, functional constraints from inputs to outputs only: values of
        the variables to come are few, so trying them costs less than narrowing them first.
        """
        changed, narrows = set(new), list[Narrow]()
        for constraint in self.evaluated:
            variables = self._variables[id(constraint)]
            open_ = [v for v in variables if v not in known]
            if open_ and id(constraint) in self._pruning and changed.intersection(variables):
                outputs = self._outputs.get(id(constraint))
                narrows += self._narrow(constraint, known, only=outputs)
                changed.update(open_ if outputs is None else outputs)
        return narrows

    def _constraints_that_prune(self) -> set[int]:
        """Ids of constraints worth running while variables are open: those that lead to a limit.

        A constraint that only computes a value nobody limits (a feature of the cost model) is run
        once, when all that it needs is known.
        """
        limited = {v.name for v in self._space.variables if v.domain}
        prune: set[int] = set()
        while True:
            more = [
                c
                for c in self._constraints
                if id(c) not in prune
                and (
                    id(c) not in self._outputs
                    or any(v in limited for v in self._outputs[id(c)])
                    or (isinstance(c, Sum) and (c.constant < 0 or any(k < 0 for k, _ in c.terms)))
                )
            ]
            if not more:
                return prune
            for constraint in more:
                prune.add(id(constraint))
                limited.update(self._variables[id(constraint)])

    def _narrow(
        self, constraint: Constraint, known: Collection[str], only: tuple[str, ...] | None = None
    ) -> list[Narrow]:
        variables = self._variables[id(constraint)]
        key = (id(constraint), tuple([v in known for v in variables]), only)
        if key not in self._narrows:  # at many levels the same of its variables are known
            signed = not self._signs.negative.isdisjoint(variables)
            self._narrows[key] = narrower(constraint, self.index, known, only=only, signed=signed)
        narrow = self._narrows[key]
        return [] if narrow is None else [narrow]
