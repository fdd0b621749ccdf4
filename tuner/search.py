"""Finds valid points: branches variable by variable over thousands of partial points side by side.

The order of the variables and the propagators of every level are worked out once per space. A level
copies each partial point once for every value that its next variable may still take, narrows all
copies, and keeps those that may still become valid. Searching deep first in chunks makes it
complete; keeping a random part of each level makes it a sampler.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.space import Constraint, SearchSpace, Sum, holds

from tuner.definitions import Definition, Signs, definitions, variables_of
from tuner.propagate import EXACT, FAR, Boxes, Flags, Floats, Narrow, narrower

Rows: TypeAlias = NDArray[np.int64]
"""Points as an array [points, variables], columns in the order of the space."""
Allowed: TypeAlias = Mapping[int, Flags]
"""Restrictions per owner: variable -> flags [owners, values of its domain]. Absent: all allowed."""

_CHUNK: Final = 1024
_ROOT_ROUNDS: Final = 4


@dataclass(frozen=True, slots=True)
class Level:
    """Branching over one variable: its values, what to narrow then, whose membership to test."""

    variable: int
    values: Floats
    narrows: tuple[Narrow, ...]
    members: tuple[tuple[int, Floats], ...]


@dataclass(slots=True)
class Front:
    """Partial points side by side: bounds [variables, points], and the owner of each."""

    lower: Floats
    upper: Floats
    owner: NDArray[np.intp]

    @property
    def count(self) -> int:
        return int(self.owner.shape[0])

    def kept(self, which: Flags | NDArray[np.intp]) -> Front:
        return Front(self.lower[:, which], self.upper[:, which], self.owner[which])


class Search:
    """The compiled search of one space. `constraints` may be a part of the space's own."""

    def __init__(self, space: SearchSpace, constraints: Sequence[Constraint] | None = None) -> None:
        self._space = space
        self._constraints = tuple(space.constraints if constraints is None else constraints)
        self.index = {v.name: i for i, v in enumerate(space.variables)}
        self._values = {v.name: np.asarray(v.domain, dtype=np.float64) for v in space.variables}
        self._signs = Signs.of(space)
        self._pruning = self._constraints_that_prune()
        self._root = self._narrowed_root()
        self.levels = self._plan() if self._root.count else ()

    @property
    def is_empty(self) -> bool:
        """Whether the bounds alone prove that no point is valid."""
        return not self._root.count

    def scan(
        self, allowed: Allowed | None = None, *, give_up_after: int | None = None
    ) -> Iterator[Rows]:
        """Every valid point once, in the order of the search, in blocks of rows.

        Raises:
            TimeoutError: more than `give_up_after` partial points were looked at.
        """
        stack = [(0, self._root)]
        looked_at = 0
        while stack:
            depth, front = stack.pop()
            if not front.count:
                continue
            if depth == len(self.levels):
                rows = self._finished(front)[0]
                if len(rows):
                    yield rows
                continue
            after = self._expand(depth, front, allowed)
            looked_at += after.count
            if give_up_after is not None and looked_at > give_up_after:
                raise TimeoutError(f"no end after {looked_at} partial points")
            chunks = [
                after.kept(np.arange(at, min(at + _CHUNK, after.count)))
                for at in range(0, after.count, _CHUNK)
            ]
            stack += [(depth + 1, chunk) for chunk in reversed(chunks)]

    def beam(
        self,
        rng: np.random.Generator,
        width: int,
        *,
        owners: int = 1,
        allowed: Allowed | None = None,
    ) -> tuple[Rows, NDArray[np.intp], bool]:
        """Valid points found while keeping at most `width` random partial ones per owner and level.

        Returns the points, the owner of each, and whether nothing was dropped, so that these are
        all.
        """
        front = self._root.kept(np.zeros(owners if self._root.count else 0, dtype=np.intp))
        front.owner = np.arange(front.count)
        whole = True
        for depth in range(len(self.levels)):
            if not front.count:
                break
            front = self._expand(depth, front, allowed)
            thinned = _thinned(front, width, rng)
            whole &= thinned.count == front.count
            front = thinned
        return (*self._finished(front), whole)

    # -- one level ---------------------------------------------------------------------------------

    def _expand(self, depth: int, front: Front, allowed: Allowed | None) -> Front:
        level = self.levels[depth]
        v, values = level.variable, level.values
        fits = (values >= front.lower[v][:, None]) & (values <= front.upper[v][:, None])
        if allowed is not None and v in allowed:
            fits &= allowed[v][front.owner]
        source, which = np.nonzero(fits)
        after = front.kept(source)
        after.lower[v] = after.upper[v] = values[which]
        return _narrowed(after, level.narrows, level.members, allowed)

    def _finished(self, front: Front) -> tuple[Rows, NDArray[np.intp]]:
        """Points of a front with every variable branched over; doubtful ones checked exactly."""
        if not front.count:
            return np.empty((0, len(self.index)), dtype=np.int64), front.owner
        open_or_huge = (front.lower != front.upper) | (np.abs(front.lower) >= EXACT)
        doubtful = open_or_huge.any(axis=0) | (not self.levels)
        rows: Rows = front.lower.T.astype(np.int64)
        if doubtful.any():
            good = np.asarray(
                [not d or self._holds(row) for d, row in zip(doubtful, rows, strict=True)]
            )
            return rows[good], front.owner[good]
        return rows, front.owner

    def _holds(self, row: Rows) -> bool:
        """Whether a row is valid, in whole numbers."""
        point = {v.name: int(x) for v, x in zip(self._space.variables, row, strict=True)}
        return all(holds(c, point) for c in self._constraints) and all(
            point[v.name] in v.domain for v in self._space.variables if v.domain
        )

    # -- compiling a space -------------------------------------------------------------------------

    def _narrowed_root(self) -> Front:
        """One box with the bounds that domains and constraints give before any choice."""
        variables = self._space.variables
        lower = np.asarray([[float(v.domain[0]) if v.domain else 0.0] for v in variables])
        upper = np.asarray([[float(v.domain[-1]) if v.domain else FAR] for v in variables])
        front = Front(lower.reshape(-1, 1), upper.reshape(-1, 1), np.zeros(1, dtype=np.intp))
        constants = {v.name for v in variables if len(v.domain) == 1}
        narrows = [n for c in self._topological() for n in self._narrow(c, constants)]
        for _ in range(_ROOT_ROUNDS):
            front = _narrowed(front, narrows, (), None)
            if not front.count:
                break
        return front

    def _narrow(self, constraint: Constraint, known: Collection[str]) -> list[Narrow]:
        signed = any(v in self._signs.negative for v in variables_of(constraint))
        narrow = narrower(constraint, self.index, known, signed)
        return [] if narrow is None else [narrow]

    def _plan(self) -> tuple[Level, ...]:
        """The levels: tunables first, then derived variables that nothing fixes."""
        known = {v.name for v in self._space.variables if len(v.domain) == 1}
        evaluated = self._topological()
        levels: list[Level] = []
        for pool in (
            [v.name for v in self._space.variables if v.tunable],
            [v.name for v in self._space.variables if not v.tunable and v.domain],
        ):
            while waiting := [v for v in pool if v not in known]:
                name = max(waiting, key=lambda v: self._urgency(v, known))
                fixed = self._definitions(known | {name})
                after = known | {name} | {v for d in fixed for v in d.fixes}
                levels.append(self._level(name, known, after, fixed, evaluated))
                known = after
        return tuple(levels)

    def _definitions(self, known: Collection[str]) -> list[Definition]:
        return definitions(self._constraints, known, self._signs)

    def _urgency(self, name: str, known: Collection[str]) -> tuple[int, int, int]:
        """Prefer what closes constraints, then what touches known variables, then few values."""
        closed = touched = 0
        for constraint in self._constraints:
            variables = variables_of(constraint)
            if name in variables:
                others = [v for v in variables if v != name]
                open_count = sum(v not in known for v in others)
                closed += open_count <= 1
                touched += any(v in known for v in others)
        return closed, touched, -len(self._values[name])

    def _topological(self) -> list[Constraint]:
        """Constraints in the order in which values flow when all tunables are known."""
        known = {v.name for v in self._space.variables if v.tunable or len(v.domain) == 1}
        defining = [d.constraint for d in self._definitions(known)]
        seen = {id(c) for c in defining}
        return [*defining, *(c for c in self._constraints if id(c) not in seen)]

    def _level(
        self,
        name: str,
        before: Collection[str],
        after: Collection[str],
        fixed: Sequence[Definition],
        evaluated: Sequence[Constraint],
    ) -> Level:
        new = set(after) - set(before)
        first = [d.constraint for d in fixed if any(v in new for v in d.fixes)]
        ran = {id(c) for c in first}
        closing = [
            c
            for c in evaluated
            if id(c) not in ran
            and any(v in new for v in variables_of(c))
            and all(v in after for v in variables_of(c))
        ]
        changed = set(new)
        forward = self._affected(evaluated, changed, after)
        backward = self._affected(list(reversed(evaluated)), changed, after)
        narrows = [n for c in (*closing, *forward, *backward) for n in self._narrow(c, set(after))]
        progressive = self._progressive(first, before, name)
        members = tuple(
            (self.index[v], self._values[v]) for v in sorted(new - {name}) if len(self._values[v])
        )
        return Level(self.index[name], self._values[name], (*progressive, *narrows), members)

    def _progressive(
        self, first: Sequence[Constraint], before: Collection[str], name: str
    ) -> list[Narrow]:
        """Propagators of definitions, each knowing only what was fixed before it."""
        known, narrows = {*before, name}, list[Narrow]()
        for constraint in first:
            narrows += self._narrow(constraint, known)
            known.update(variables_of(constraint))
        return narrows

    def _affected(
        self, order: Sequence[Constraint], changed: set[str], known: Collection[str]
    ) -> list[Constraint]:
        """Constraints with an open variable that a change reaches; grows `changed` as it goes."""
        reached = []
        for constraint in order:
            variables = variables_of(constraint)
            open_ = [v for v in variables if v not in known]
            if open_ and id(constraint) in self._pruning and any(v in changed for v in variables):
                reached.append(constraint)
                changed.update(open_)
        return reached

    def _constraints_that_prune(self) -> set[int]:
        """Ids of constraints worth running while variables are open: those that lead to a limit.

        A constraint that only computes a value nobody limits (a feature of the cost model) is run
        once, when all that it needs is known.
        """
        known = {v.name for v in self._space.variables if v.tunable or len(v.domain) == 1}
        outputs = {id(d.constraint): d.fixes for d in self._definitions(known)}
        limited = {v.name for v in self._space.variables if v.domain}
        prune: set[int] = set()
        while True:
            more = [
                c
                for c in self._constraints
                if id(c) not in prune
                and (
                    id(c) not in outputs
                    or any(v in limited for v in outputs[id(c)])
                    or (isinstance(c, Sum) and (c.constant < 0 or any(k < 0 for k, _ in c.terms)))
                )
            ]
            if not more:
                return prune
            for constraint in more:
                prune.add(id(constraint))
                limited.update(variables_of(constraint))


def _narrowed(
    front: Front,
    narrows: Sequence[Narrow],
    members: Sequence[tuple[int, Floats]],
    allowed: Allowed | None,
) -> Front:
    """The boxes that survive: not refuted, no empty range, fixed values within what is allowed."""
    box = Boxes(front.lower, front.upper, np.ones(front.count, dtype=np.bool_))
    for narrow in narrows:
        narrow(box)
    alive = box.alive & (front.lower <= front.upper).all(axis=0)
    for variable, values in members:
        rank = np.minimum(np.searchsorted(values, front.lower[variable]), len(values) - 1)
        member = values[rank] == front.lower[variable]
        if allowed is not None and variable in allowed:
            member &= allowed[variable][front.owner, rank]
        alive &= member | (front.lower[variable] < front.upper[variable])
    return front if alive.all() else front.kept(alive)


def _thinned(front: Front, width: int, rng: np.random.Generator) -> Front:
    """At most `width` random boxes of every owner."""
    counts = np.bincount(front.owner)
    if counts.size == 0 or counts.max() <= width:
        return front
    order = np.lexsort((rng.random(front.count), front.owner))
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    rank = np.arange(front.count) - starts[front.owner[order]]
    return front.kept(np.sort(order[rank < width]))
