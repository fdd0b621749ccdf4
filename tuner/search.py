"""Finds valid points: branches variable by variable over thousands of partial points side by side.

A level (`tuner.search_plan`) copies each partial point once for every value that its next variable
may still take, narrows all copies, and keeps those that may still become valid. Searching deep
first in chunks makes it complete; keeping a random part of each level makes it a sampler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.space import Constraint, SearchSpace, holds

from tuner.propagate import EXACT, FAR, Boxes, Flags, Floats
from tuner.search_plan import Effect, SearchPlan

Rows: TypeAlias = NDArray[np.int64]
"""Points as an array [points, variables], columns in the order of the space."""
Allowed: TypeAlias = Mapping[int, Flags]
"""Restrictions per owner: variable -> flags [owners, values of its domain]. Absent: all allowed."""

_CHUNK: Final = 1024
_ROOT_ROUNDS: Final = 4
_SPARE: Final = 2
"""Copies that a sampler makes for every partial point it keeps; some of them die."""


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
        at = np.flatnonzero(which) if which.dtype == np.bool_ else which
        return Front(
            np.take(self.lower, at, axis=1), np.take(self.upper, at, axis=1), self.owner[at]
        )


class Search:
    """The compiled search of one space. `constraints` may be a part of the space's own."""

    def __init__(self, space: SearchSpace, constraints: Sequence[Constraint] | None = None) -> None:
        self._space = space
        self._constraints = tuple(space.constraints if constraints is None else constraints)
        self._plan = plan = SearchPlan(space, self._constraints)
        self.index = plan.index
        self._tunables = [self.index[v.name] for v in space.tunables]
        self._root = self._narrowed_root(plan.before_any_choice())
        self.levels = plan.levels() if self._root.count else ()

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
            after = self._expand(depth, front, allowed, None)
            looked_at += after.count
            if give_up_after is not None and looked_at > give_up_after:
                raise TimeoutError(f"no end after {looked_at} partial points")
            stack += [(depth + 1, chunk) for chunk in reversed(_chunks(after))]

    def beam(
        self,
        rng: np.random.Generator,
        width: int,
        *,
        owners: int = 1,
        allowed: Allowed | None = None,
    ) -> tuple[Rows, NDArray[np.intp], float]:
        """Valid points found while keeping at most `width` random partial ones per owner and level.

        Returns the points, the owner of each, and for how many points each one stands: 1 when
        nothing was dropped, so that these are all; else an estimate (Knuth 1975, for one owner).
        """
        front = self._root.kept(np.zeros(owners if self._root.count else 0, dtype=np.intp))
        front.owner = np.arange(front.count)
        thinning = _Thinning(rng, width)
        for depth in range(len(self.levels)):
            if not front.count:
                break
            front = self._expand(depth, front, allowed, thinning)
        return (*self._finished(front), thinning.stands_for)

    def valid(self, tunables: Rows) -> tuple[Rows, NDArray[np.intp]]:
        """The valid ones of points given by their tunables, and which ones these are.

        Values are of the domains, columns in the order of the tunables. Nothing is branched over:
        where derived values do not follow from the tunables, no point is found.
        """
        effect = self._all_at_once
        if effect is None or not self._root.count:
            return np.empty((0, len(self.index)), dtype=np.int64), np.empty(0, dtype=np.intp)
        values = tunables.T
        front = self._root.kept(np.zeros(len(tunables), dtype=np.intp))
        front.owner = np.arange(len(tunables))
        low, high = front.lower[self._tunables], front.upper[self._tunables]
        fits = ((values >= low) & (values <= high)).all(axis=0)
        front.lower[self._tunables] = front.upper[self._tunables] = values
        return self._finished(front.kept(fits & _alive(front, effect, None)))

    @cached_property
    def _all_at_once(self) -> Effect | None:
        return self._plan.all_at_once()

    # -- one level ---------------------------------------------------------------------------------

    def _expand(
        self, depth: int, front: Front, allowed: Allowed | None, thinning: _Thinning | None
    ) -> Front:
        level = self.levels[depth]
        v, values = level.variable, level.values
        fits = (values >= front.lower[v][:, None]) & (values <= front.upper[v][:, None])
        if allowed is not None and v in allowed:
            fits &= allowed[v][front.owner]
        source, which = np.nonzero(fits)
        if thinning is not None:
            some = thinning.chosen(front.owner[source], _SPARE)
            source, which = source[some], which[some]
        after = front.kept(source)
        after.lower[v] = after.upper[v] = values[which]
        alive = np.flatnonzero(_alive(after, level.effect, allowed))
        if thinning is not None:
            alive = alive[thinning.chosen(after.owner[alive], 1)]
        return after if len(alive) == after.count else after.kept(alive)

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

    def _narrowed_root(self, effect: Effect) -> Front:
        """One box with the bounds that domains and constraints give before any choice."""
        variables = self._space.variables
        lower = np.asarray([[float(v.domain[0]) if v.domain else 0.0] for v in variables])
        upper = np.asarray([[float(v.domain[-1]) if v.domain else FAR] for v in variables])
        front = Front(lower.reshape(-1, 1), upper.reshape(-1, 1), np.zeros(1, dtype=np.intp))
        for _ in range(_ROOT_ROUNDS):
            front = front.kept(_alive(front, effect, None))
            if not front.count:
                break
        return front


class _Thinning:
    """Chance decides who stays when there are too many; counts for how many each one stands."""

    def __init__(self, rng: np.random.Generator, width: int) -> None:
        self._rng = rng
        self._width = width
        self.stands_for = 1.0

    def chosen(self, owner: NDArray[np.intp], spare: int) -> NDArray[np.intp]:
        """Positions of at most `width * spare` random ones of every owner, in their order."""
        counts = np.bincount(owner)
        if counts.size == 0 or counts.max() <= self._width * spare:
            return np.arange(len(owner))
        order = np.lexsort((self._rng.random(len(owner)), owner))
        starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
        rank = np.arange(len(owner)) - starts[owner[order]]
        chosen = np.sort(order[rank < self._width * spare])
        self.stands_for *= len(owner) / len(chosen)
        return chosen


def _alive(front: Front, effect: Effect, allowed: Allowed | None) -> Flags:
    """Narrows all boxes. Which survive: not refuted, no empty range, fixed values allowed."""
    box = Boxes(front.lower, front.upper, np.ones(front.count, dtype=np.bool_))
    for narrow in effect.narrows:
        narrow(box)
    alive = box.alive & (front.lower <= front.upper).all(axis=0)
    for variable, values in effect.members:
        rank = np.minimum(np.searchsorted(values, front.lower[variable]), len(values) - 1)
        member = values[rank] == front.lower[variable]
        if allowed is not None and variable in allowed:
            member &= allowed[variable][front.owner, rank]
        alive &= member | (front.lower[variable] < front.upper[variable])
    return alive


def _chunks(front: Front) -> list[Front]:
    if front.count <= _CHUNK:
        return [front]
    ends = range(_CHUNK, front.count + _CHUNK, _CHUNK)
    return [front.kept(np.arange(end - _CHUNK, min(end, front.count))) for end in ends]
