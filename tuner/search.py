"""Finds valid points: branches variable by variable over thousands of partial points side by side.

A level (`tuner.search_plan`) copies each partial point once for every value that its next variable
may still take, narrows all copies, and keeps those that may still become valid. Searching deep
first in chunks makes it complete; keeping a random part of each level makes it a sampler.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.space import SearchSpace, holds

from tuner.propagate import EXACT, FAR, Flags, Floats, VariableBoxes
from tuner.search_plan import BranchLevel, Effect, JoinedLevel, SearchPlan

Rows: TypeAlias = NDArray[np.int64]
"""Points as an array [points, variables], columns in the order of the space."""
Allowed: TypeAlias = Mapping[int, Flags]
"""Restrictions per owner: variable -> flags [owners, values of its domain]. Absent: all allowed."""

_CHUNK: Final = 1024
_ROOT_ROUNDS: Final = 4
_SPARE: Final = 2
"""Copies that a sampler makes for every partial point it keeps; some of them die."""
_AT_ONCE: Final = 256
"""Combinations of the first variables' values that are tried at once: about so many partial points
take no more time than one, for numpy's calls are what takes it."""
_EVEN_WIDTH: Final = 4
"""Partial points for each one of a walk: as one dies, the next takes its place."""
_RATIO_ROUNDS: Final = 40
"""Of the iteration to the generalized golden ratio; each halves the error at least."""


@dataclass(slots=True)
class PartialPoints:
    """Partial points side by side: bounds [variables, points], and the owner of each."""

    lower: Floats
    upper: Floats
    owner: NDArray[np.intp]

    @property
    def count(self) -> int:
        return int(self.owner.shape[0])

    def kept(self, which: Flags | NDArray[np.intp]) -> PartialPoints:
        at = np.flatnonzero(which) if which.dtype == np.bool_ else which
        return PartialPoints(
            np.take(self.lower, at, axis=1), np.take(self.upper, at, axis=1), self.owner[at]
        )


class Search:
    """The compiled search of one space.

    Args:
        order: of the variables that are branched over; none: by what they close.
        limits_on: variables that there will be limits on: these prune as early as constraints do.
    """

    def __init__(
        self, space: SearchSpace, order: Sequence[str] = (), limits_on: Collection[str] = ()
    ) -> None:
        self._space = space
        self.plan = plan = SearchPlan(space, limits_on)
        self.index = plan.index
        self._tunables = [self.index[v.name] for v in space.tunables]
        self._before = plan.before_any_choice()
        self._reached: dict[int, list[int]] = {}
        """By variable: the places of those that speak of it."""
        for place, (variables, _) in enumerate(self._before):
            for v in variables.tolist():
                self._reached.setdefault(v, []).append(place)
        self._due = set(range(len(self._before)))
        """Places of those that have more to say, without a limit."""
        self._unlimited = self.root = self._narrowed(self._widest(), self._due)
        self.levels = plan.levels(order) if self.root.count else ()

    def limit(self, variable: str, most: int) -> None:
        """From now on only points whose variable is at most that; replaces an earlier limit.

        Nothing is compiled anew. It prunes early where the search knows of it (`limits_on`), or a
        constraint of the space is on the variable as well.
        """
        root = self._unlimited.kept(np.ones(self._unlimited.count, dtype=np.bool_))
        v = self.index[variable]
        upper = root.upper[v]
        np.minimum(upper, most, out=upper)  # A limit above the domain permits nothing beyond it.
        self.root = self._narrowed(root, self._due.union(self._reached.get(v, ())))

    def unlimit(self) -> None:
        """From now on all points again."""
        self.root = self._unlimited

    def scan(self, allowed: Allowed | None = None) -> Iterator[Rows]:
        """Every valid point once, in the order of the search, in blocks of rows."""
        begun = self._root_alone() if allowed is not None else self._begun()
        stack = [begun]
        while stack:
            depth, partial, at = stack.pop()
            if depth == len(self.levels):
                rows = self._finished(partial.kept(at))[0]
                if len(rows):
                    yield rows
            elif len(at):
                after, alive = self._expand(depth, partial, at, allowed, None)
                stack += [(depth + 1, after, part) for part in reversed(_parts(alive))]

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
        thinning = _RandomThinning(rng, width)
        partial = self._thinned(owners, allowed, thinning)
        return (*self._finished(partial), thinning.stands_for)

    def evenly(self, first: int, count: int) -> Rows:
        """Points number `first`, `first` + 1 … of an endless walk that is spread over the space.

        At every level an additive recurrence says which of the values that are left a point takes
        (Roberts 2018, by powers of the generalized golden ratio): any stretch of the walk has about
        as many points of one as of the other. Points come again, and some numbers have none.
        """
        dimensions = len(self.levels)
        ratio = 2.0
        for _ in range(_RATIO_ROUNDS):
            ratio = (1.0 + ratio) ** (1.0 / (dimensions + 1))
        steps = ratio ** -(1.0 + np.arange(dimensions))
        share = (0.5 + np.outer(steps, first + np.arange(count))) % 1.0
        rows, owner = self._finished(self._thinned(count, None, _EvenThinning(share)))
        return rows[np.unique(owner, return_index=True)[1]]

    def _thinned(self, owners: int, allowed: Allowed | None, thinning: _Thinning) -> PartialPoints:
        """All levels, of each of which some stay for every owner."""
        if owners == 1 and allowed is None and thinning.most >= _AT_ONCE:
            begin, partial, at = self._begun()
        else:
            begin, partial, at = self._root_alone(owners)
        for depth in range(begin, len(self.levels)):
            if not len(at):
                break
            partial, at = self._expand(depth, partial, at, allowed, thinning)
        return partial.kept(at)

    def valid(self, tunables: Rows) -> tuple[Rows, NDArray[np.intp]]:
        """The valid ones of points given by their tunables, and which ones these are.

        Values are of the domains, columns in the order of the tunables. Nothing is branched over:
        where derived values do not follow from the tunables, no point is found.
        """
        effect = self._all_at_once
        if effect is None or not self.root.count:
            return np.empty((0, len(self.index)), dtype=np.int64), np.empty(0, dtype=np.intp)
        values = tunables.T
        partial = self.root.kept(np.zeros(len(tunables), dtype=np.intp))
        partial.owner = np.arange(len(tunables))
        low, high = partial.lower[self._tunables], partial.upper[self._tunables]
        fits = ((values >= low) & (values <= high)).all(axis=0)
        partial.lower[self._tunables] = partial.upper[self._tunables] = values
        return self._finished(partial.kept(fits & _alive(partial, effect, None)))

    def completed(self, values: Mapping[str, Floats], count: int) -> Rows:
        """The valid points with these values of some variables, from which all others follow."""
        partial = self.root.kept(np.zeros(count if self.root.count else 0, dtype=np.intp))
        for name, column in values.items():
            v = self.index[name]
            partial.lower[v] = partial.upper[v] = column
        for level in self.levels:
            partial = self.branched(level, partial)[0]
        return self._finished(partial)[0]

    @cached_property
    def _all_at_once(self) -> Effect | None:
        return self.plan.all_at_once()

    @cached_property
    def _joined_level(self) -> JoinedLevel | None:
        return self.plan.joined(self.levels, _AT_ONCE)

    def _root_alone(self, owners: int = 1) -> tuple[int, PartialPoints, NDArray[np.intp]]:
        """What a search begins with: no level, partial points, and which of these stay."""
        partial = self.root.kept(np.zeros(owners if self.root.count else 0, dtype=np.intp))
        partial.owner = np.arange(partial.count)
        return 0, partial, partial.owner

    def _begun(self) -> tuple[int, PartialPoints, NDArray[np.intp]]:
        """As `_root_alone`, behind the first levels, if these can be taken at once."""
        first = self._joined_level if self.root.count else None
        if first is None:
            return self._root_alone()
        low, high = self.root.lower[first.variables], self.root.upper[first.variables]
        values = first.values[:, ((first.values >= low) & (first.values <= high)).all(axis=0)]
        partial = self.root.kept(np.zeros(values.shape[1], dtype=np.intp))
        partial.lower[first.variables] = partial.upper[first.variables] = values
        return first.depth, partial, np.flatnonzero(_alive(partial, first.effect, None))

    # -- one level ---------------------------------------------------------------------------------

    def branched(
        self,
        level: BranchLevel,
        partial: PartialPoints,
        within: Callable[[PartialPoints], Flags] | None = None,
    ) -> tuple[PartialPoints, NDArray[np.intp]]:
        """What a level makes of partial points, and the position of each one's value.

        Args:
            within: which of them may stay, beside what the constraints say.
        """
        v, values = level.variable, level.values
        fits = (values >= partial.lower[v][:, None]) & (values <= partial.upper[v][:, None])
        source, which = np.nonzero(fits)
        after = partial.kept(source)
        after.lower[v] = after.upper[v] = values[which]
        alive = _alive(after, level.effect, None)
        if within is not None:
            alive &= within(after)
        return (after, which) if alive.all() else (after.kept(alive), which[alive])

    def _expand(
        self,
        depth: int,
        partial: PartialPoints,
        at: NDArray[np.intp],
        allowed: Allowed | None,
        thinning: _Thinning | None,
    ) -> tuple[PartialPoints, NDArray[np.intp]]:
        """What a level makes of the partial points at some places, and which of those stay.

        To keep these alone is left to the next level, which copies them anyway.
        """
        level = self.levels[depth]
        v, values = level.variable, level.values
        low, high = partial.lower[v, at], partial.upper[v, at]
        fits = (values >= low[:, None]) & (values <= high[:, None])
        if allowed is not None and v in allowed:
            fits &= allowed[v][partial.owner[at]]
        source, which = np.nonzero(fits)
        source = at[source]
        if thinning is not None:
            some = thinning.chosen(depth, partial.owner[source], _SPARE)
            source, which = source[some], which[some]
        after = partial.kept(source)
        after.lower[v] = after.upper[v] = values[which]
        alive = np.flatnonzero(_alive(after, level.effect, allowed))
        if thinning is not None:
            alive = alive[thinning.chosen(depth, after.owner[alive], 1)]
        return after, alive

    def _finished(self, partial: PartialPoints) -> tuple[Rows, NDArray[np.intp]]:
        """Partial points with every variable branched over; unsure ones are checked exactly."""
        if not partial.count:
            return np.empty((0, len(self.index)), dtype=np.int64), partial.owner
        open_or_huge = (partial.lower != partial.upper) | (np.abs(partial.lower) >= EXACT)
        unsure = open_or_huge.any(axis=0) | (not self.levels)
        rows: Rows = partial.lower.T.astype(np.int64)
        if unsure.any():
            good = np.asarray(
                [not d or self._holds(row) for d, row in zip(unsure, rows, strict=True)]
            )
            return rows[good], partial.owner[good]
        return rows, partial.owner

    def _holds(self, row: Rows) -> bool:
        """Whether a row is valid, in whole numbers."""
        point = {v.name: int(x) for v, x in zip(self._space.variables, row, strict=True)}
        return all(holds(c, point) for c in self._space.constraints) and all(
            point[v.name] in v.domain for v in self._space.variables if v.domain
        )

    def _widest(self) -> PartialPoints:
        """One box with the bounds that domains give."""
        variables = self._space.variables
        lower = np.asarray([[float(v.domain[0]) if v.domain else 0.0] for v in variables])
        upper = np.asarray([[float(v.domain[-1]) if v.domain else FAR] for v in variables])
        return PartialPoints(lower.reshape(-1, 1), upper.reshape(-1, 1), np.zeros(1, dtype=np.intp))

    def _narrowed(self, root: PartialPoints, due: set[int]) -> PartialPoints:
        """By what constraints say before any choice: the places of those that are asked are `due`.

        Where bounds change, those that speak of them are asked again. Still due are in the end
        those that were not asked any more.
        """
        for _ in range(_ROOT_ROUNDS):
            bounds = np.stack([root.lower, root.upper])
            box = VariableBoxes(bounds[0], bounds[1], np.ones(root.count, dtype=np.bool_))
            for place, (variables, narrow) in enumerate(self._before):
                if place not in due:
                    continue
                due.remove(place)
                before = bounds.take(variables, axis=1)
                narrow(box)
                is_changed = before != bounds.take(variables, axis=1)
                if is_changed.any():
                    for v in variables[is_changed.any(axis=(0, 2))].tolist():
                        due.update(self._reached[v])
            narrowed = PartialPoints(box.lower, box.upper, root.owner)
            root = narrowed.kept(box.alive & (box.lower <= box.upper).all(axis=0))
            if not root.count or not due:
                break
        return root


class _Thinning(Protocol):
    """Decides who stays of a level: all, of no more than `most` of one owner."""

    most: int

    def chosen(self, depth: int, owner: NDArray[np.intp], spare: int) -> NDArray[np.intp]:
        """Positions of those that stay, `spare` times as many as in the end, in their order."""
        ...


class _EvenThinning:
    """A share of the way through those of an owner says where its few begin: [levels, owners]."""

    most = 0

    def __init__(self, share: Floats) -> None:
        self._share = share

    def chosen(self, depth: int, owner: NDArray[np.intp], spare: int) -> NDArray[np.intp]:
        counts = np.bincount(owner, minlength=self._share.shape[1])
        rank = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
        begin = (self._share[depth] * counts).astype(np.intp)
        behind = (rank - begin[owner]) % counts[owner]
        return np.flatnonzero(behind < _EVEN_WIDTH * spare)


class _RandomThinning:
    """Chance decides who stays when there are too many; counts for how many each one stands."""

    def __init__(self, rng: np.random.Generator, width: int) -> None:
        self._rng = rng
        self._width = self.most = width
        self.stands_for = 1.0

    def chosen(self, depth: int, owner: NDArray[np.intp], spare: int) -> NDArray[np.intp]:
        """Positions of at most `width * spare` random ones of every owner, in their order."""
        del depth
        counts = np.bincount(owner)
        if counts.size == 0 or counts.max() <= self._width * spare:
            return np.arange(len(owner))
        order = np.lexsort((self._rng.random(len(owner)), owner))
        starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
        rank = np.arange(len(owner)) - starts[owner[order]]
        chosen = np.sort(order[rank < self._width * spare])
        self.stands_for *= len(owner) / len(chosen)
        return chosen


def _alive(partial: PartialPoints, effect: Effect, allowed: Allowed | None) -> Flags:
    """Narrows all boxes. Which survive: not refuted, no empty range, fixed values allowed."""
    box = VariableBoxes(partial.lower, partial.upper, np.ones(partial.count, dtype=np.bool_))
    for narrow in effect.narrows:
        narrow(box)
    alive = box.alive & (partial.lower <= partial.upper).all(axis=0)
    for variable, values in effect.members:
        rank = np.minimum(np.searchsorted(values, partial.lower[variable]), len(values) - 1)
        member = values[rank] == partial.lower[variable]
        if allowed is not None and variable in allowed:
            member &= allowed[variable][partial.owner, rank]
        alive &= member | (partial.lower[variable] < partial.upper[variable])
    return alive


def distinct(rows: Rows) -> NDArray[np.intp]:
    """Where the different rows are first, in their order: by the first value, then the second ...

    Below zero that is an order as well, of no meaning. (As numpy's `unique` along an axis, which
    compares value by value and takes ten times as long.)
    """
    differ = rows[:, (rows != rows[:1]).any(axis=0)]
    nbytes = differ.shape[1] * rows.itemsize
    if not nbytes:
        return np.arange(min(len(rows), 1))
    most_significant_first = np.ascontiguousarray(differ.astype(">i8"))
    _, first = np.unique(most_significant_first.view(f"V{nbytes}").ravel(), return_index=True)
    return first


def chunks(partial: PartialPoints) -> list[PartialPoints]:
    """Partial points in parts whose arrays are not too large for a processor's caches."""
    if partial.count <= _CHUNK:
        return [partial]
    return [partial.kept(part) for part in _parts(np.arange(partial.count))]


def _parts(at: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    return [at[begin : begin + _CHUNK] for begin in range(0, len(at), _CHUNK)]
