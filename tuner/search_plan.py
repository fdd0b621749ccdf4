"""What a search branches over, variable by variable, and what follows from each choice.

The order of the variables is worked out once per space, the propagators of a level when it is first
needed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, takewhile
from operator import mul

import numpy as np
from numpy.typing import NDArray
from tilefarm.space import Constraint, Largest, Prod, SearchSpace, Sum, Table

from tuner.functional_constraints import (
    FunctionalConstraint,
    InferenceState,
    Signs,
    functional_constraints,
    variables_of,
)
from tuner.propagate import Floats, Narrow, TableColumns, narrower


@dataclass(frozen=True, slots=True)
class Effect:
    """What follows where variables were fixed: what to narrow, and whose membership to test."""

    narrows: tuple[Narrow, ...]
    members: tuple[tuple[int, Floats], ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """Variables become known by choice, and others follow from them.

    Attributes:
        before: the variables that were known.
        after: those that are known then.
        fixed: what follows, in an order in which it can be computed.
        open_: the constraints that are open before, in the order of evaluation.
    """

    chosen: tuple[str, ...]
    before: frozenset[str]
    after: frozenset[str]
    fixed: tuple[FunctionalConstraint, ...]
    open_: tuple[Constraint, ...]


@dataclass(frozen=True)
class BranchLevel:
    """Branching over one variable: its values, what follows from each, and what is known then."""

    variable: int
    values: Floats
    step: Step
    plan: SearchPlan

    @property
    def known(self) -> frozenset[str]:
        return self.step.after

    @cached_property
    def effect(self) -> Effect:
        """Worked out when it is first needed: not every search goes level by level."""
        return self.plan.effect(self.step)


@dataclass(frozen=True, slots=True)
class JoinedLevel:
    """Branching over the variables of the first levels at once, where these have few values.

    Attributes:
        depth: so many levels.
        values: all combinations, in the order of a search level by level [depth, combinations].
    """

    depth: int
    variables: NDArray[np.intp]
    values: Floats
    effect: Effect


class SearchPlan:
    """How one space is searched.

    Args:
        limits_on: derived variables on which a search will have limits that the space has not.

    Attributes:
        evaluated: the constraints in an order in which they compute, those last that only check.
        telling: so many variables from the first on tell valid points apart: all up to the last
            tunable, if the others follow from the tunables; else all of them.
    """

    def __init__(self, space: SearchSpace, limits_on: Collection[str] = ()) -> None:
        self._space = space
        self._limits_on = limits_on
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
        self._columns = {id(c): TableColumns(c) for c in constraints if isinstance(c, Table)}
        computed_from = {v.name for v in space.variables if v.tunable or len(v.domain) == 1}
        evaluation = functional_constraints(constraints, computed_from, self._signs)
        self._outputs = {id(d.constraint): d.fixes for d in evaluation}
        follow = computed_from.union(*self._outputs.values())
        self.telling = len(self.index)
        if len(follow) == len(self.index):
            self.telling = 1 + max([self.index[v.name] for v in space.tunables], default=-1)
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

    def before_any_choice(self) -> tuple[tuple[NDArray[np.intp], Narrow], ...]:
        """What each constraint says where only constants are known, and of which variables.

        Arithmetic that only computes what nobody limits is left to the choices, if there are any.
        """
        constants = {v.name for v in self._space.variables if len(v.domain) == 1}
        is_choice = any(v.name not in constants for v in self._space.tunables)
        return tuple(
            (np.asarray([self.index[v] for v in self._variables[id(c)]], dtype=np.intp), narrow)
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
        known = frozenset(v.name for v in self._space.variables if len(v.domain) == 1)
        levels, inference = list[BranchLevel](), InferenceState(self._constraints, self._signs)
        open_ = self.evaluated
        for pool in (
            [v.name for v in self._space.variables if v.tunable],
            [v.name for v in self._space.variables if not v.tunable and v.domain],
        ):
            while waiting := [v for v in pool if v not in known]:
                name = next((v for v in order if v in waiting), "")
                name = name or max(waiting, key=lambda v: self._urgency(v, known))
                fixed = tuple(inference.of((*known, name)))
                after = frozenset(inference.known)
                step = Step((name,), known, after, fixed, open_)
                levels.append(BranchLevel(self.index[name], self._values[name], step, self))
                known = after
                open_ = tuple([c for c in open_ if not known.issuperset(self._variables[id(c)])])
        return tuple(levels)

    def joined(self, levels: Sequence[BranchLevel], most: int) -> JoinedLevel | None:
        """The first levels as one, as many as have at most so many combinations of values.

        None if that is one of them, or none. Every constraint is asked once instead of at each
        level, which is most of the work as long as partial points are few.
        """
        sizes = accumulate((len(level.values) for level in levels), mul)
        depth = sum(1 for _ in takewhile(lambda size: size <= most, sizes))
        if depth < 2:
            return None
        first = levels[:depth]
        step = Step(
            chosen=tuple([name for level in first for name in level.step.chosen]),
            before=first[0].step.before,
            after=first[-1].step.after,
            fixed=tuple([f for level in first for f in level.step.fixed]),
            open_=first[0].step.open_,
        )
        values = np.meshgrid(*[level.values for level in first], indexing="ij")
        return JoinedLevel(
            depth,
            np.asarray([level.variable for level in first], dtype=np.intp),
            np.stack([v.ravel() for v in values]),
            self.effect(step),
        )

    def _urgency(self, name: str, known: Collection[str]) -> tuple[int, int, int]:
        """Prefer what closes constraints, then what touches known variables, then few values."""
        closed = touched = 0
        for others in self._beside[name]:
            open_count = len(others.difference(known))
            closed += open_count <= 1
            touched += open_count < len(others)
        return closed, touched, -len(self._values[name])

    def effect(self, step: Step) -> Effect:
        """What follows from a step: variables, then what is closed by it, then bounds."""
        new = step.after - step.before
        narrows, known, done = list[Narrow](), {*step.before, *step.chosen}, set[int]()
        for functional in step.fixed:
            if new.intersection(functional.fixes):
                narrows += self._narrow(functional.constraint, known)
                known.update(functional.fixes)
                done.add(id(functional.constraint))
        for constraint in step.open_:
            variables = self._variables[id(constraint)]
            if (
                id(constraint) not in done
                and new.intersection(variables)
                and known.issuperset(variables)
            ):
                narrows += self._narrow(constraint, known)
        narrows += self._bounds(new, known, step.open_)
        members = [
            (self.index[v], self._values[v])
            for v in sorted(new.difference(step.chosen))
            if len(self._values[v])
        ]
        return Effect(tuple(narrows), tuple(members))

    def _bounds(
        self, new: Collection[str], known: Collection[str], constraints: Sequence[Constraint]
    ) -> list[Narrow]:
        """Propagators of constraints that still have open variables and that the change reaches.

        In the order of evaluation, functional constraints from inputs to outputs only: values of
        the variables to come are few, so trying them costs less than narrowing them first.
        """
        changed, narrows = set(new), list[Narrow]()
        for constraint in constraints:
            variables = self._variables[id(constraint)]
            if id(constraint) not in self._pruning or changed.isdisjoint(variables):
                continue
            if open_ := [v for v in variables if v not in known]:
                outputs = self._outputs.get(id(constraint))
                narrows += self._narrow(constraint, known, only=outputs)
                changed.update(open_ if outputs is None else outputs)
        return narrows

    def _constraints_that_prune(self) -> set[int]:
        """Ids of constraints worth running while variables are open: those that lead to a limit.

        A constraint that only computes a value nobody limits (a feature of the cost model) is run
        once, when all that it needs is known.
        """
        limited = {v.name for v in self._space.variables if v.domain} | {*self._limits_on}
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
            self._narrows[key] = narrower(
                constraint,
                self.index,
                known,
                only=only,
                signed=signed,
                columns=self._columns.get(id(constraint)),
            )
        narrow = self._narrows[key]
        return [] if narrow is None else [narrow]
