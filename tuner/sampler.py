"""Valid points of a search space: complete, sample, enumerate; explain what is invalid."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.space import Point, SearchSpace, violations

from tuner.counted_points import MOST_EDGES, CountedPoints, Weights
from tuner.functional_constraints import Step, evaluation, variables_of
from tuner.propagate import Flags
from tuner.search import Allowed, Rows, Search, distinct

Key: TypeAlias = tuple[int, ...]
"""What tells candidates apart: the values of the tunables, in the order of the space."""

_WIDTH: Final = 512
_WIDER: Final = (1, 4, 16)
_CHILDREN: Final = 6
"""Children of a pair that are drawn for one valid one; about a third of them are valid."""


@dataclass(frozen=True, slots=True)
class SpaceSize:
    """How many valid points a space has, or about how many."""

    points: float
    is_exact: bool

    def __str__(self) -> str:
        if self.is_exact:
            return f"{self.points:,.0f}".replace(",", " ")
        return f"about {self.points:.1e}"


class Sampler:
    """The points of one space. Compile once, ask often; nothing but `limited` changes its answers.

    What counts all points is not limited: `counted`, and with it `independent_draws` and `size`.

    Args:
        limits_on: variables that there will be limits on: partial points are judged by them.
    """

    def __init__(self, space: SearchSpace, *, limits_on: Collection[str] = ()) -> None:
        self.space = space
        self._limits_on = limits_on
        self.names = tuple(v.name for v in space.variables)
        self.tunables = tuple(v.name for v in space.tunables)
        self._index = {name: i for i, name in enumerate(self.names)}
        self._tunable_columns = [self._index[t] for t in self.tunables]
        self._domains = {v.name: frozenset(v.domain) for v in space.tunables}
        self._compiled: Search | None = None

    @property
    def search(self) -> Search:
        """The branching search, compiled when first needed."""
        if self._compiled is None:
            self._compiled = Search(self.space, limits_on=self._limits_on)
        return self._compiled

    @cached_property
    def _steps(self) -> tuple[Step, ...] | None:
        """What completes a point. Few of the samplers of a space complete any."""
        return evaluation(self.space, self._index)

    @cached_property
    def counted(self) -> CountedPoints | None:
        """All points of the space, counted exactly; None where that takes too much."""
        return CountedPoints.of(self.space)

    @contextmanager
    def limited(self, variable: str, most: int) -> Iterator[None]:
        """Meanwhile the points that are drawn and scanned have at most that value of a variable."""
        self.search.limit(variable, most)
        try:
            yield
        finally:
            self.search.unlimit()

    # -- one point ---------------------------------------------------------------------------------

    def key(self, point: Point) -> Key:
        """Of one point; it may lack all but the tunables."""
        return tuple([point[t] for t in self.tunables])

    def complete(self, tunables: Mapping[str, int]) -> dict[str, int] | None:
        """The valid point with these values of the tunables; None when there is none.

        Other names in `tunables` are ignored.

        Raises:
            KeyError: a tunable has no value.
        """
        if self._steps is None:
            return self._searched({t: tunables[t] for t in self.tunables})
        values = [0] * (len(self.names) + 1)
        for column, name in zip(self._tunable_columns, self.tunables, strict=True):
            values[column] = tunables[name]
        if all(step(values) for step in self._steps):
            return dict(zip(self.names, values, strict=False))
        return None

    def row_of(self, point: Point) -> Rows | None:
        """The row of the valid point with these values of the tunables; None when there is none.

        A whole point is only checked: to compile what completes one takes a hundred times as long.
        """
        is_whole = all(name in point for name in self.names)
        whole = point if is_whole and not self.explain(point) else self.complete(point)
        return None if whole is None else self.row(whole)

    def filled(self, known: Mapping[str, int]) -> dict[str, int] | None:
        """A valid point with these values of some tunables; the others are what is found first.

        None when there is none. Names that are no tunables are ignored.
        """
        return self._searched({name: known[name] for name in self.tunables if name in known})

    def _searched(self, tunables: Mapping[str, int]) -> dict[str, int] | None:
        if any(value not in self._domains[name] for name, value in tunables.items()):
            return None
        allowed = {
            self._index[v.name]: np.asarray([[d == tunables[v.name] for d in v.domain]])
            for v in self.space.tunables
            if v.name in tunables
        }
        rows = next(self.search.scan(allowed), None)
        return None if rows is None else self.points(rows[:1])[0]

    def default(self) -> dict[str, int] | None:
        """The space's default point, completed; None when the space broke its promise."""
        return self.complete(dict(self.space.default))

    def explain(self, point: Point) -> list[str]:
        """Names of the constraints that the point breaks, as `tilefarm.space.violations`."""
        return violations(self.space, point)

    # -- many points -------------------------------------------------------------------------------

    def sample(self, n: int, rng: np.random.Generator) -> list[Point]:
        """At most `n` distinct valid points, diverse; fewer only when the space has no more."""
        return [*self.points(self.draw(n, rng)[0])]

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Rows, bool]:
        """At most `n` distinct valid rows in random order, and whether the space has no others."""
        for factor in _WIDER:
            rows, _, stands_for = self.search.beam(rng, max(_WIDTH, n + n // 2) * factor)
            if stands_for == 1.0 or len(rows) >= n:
                return _some(rows, n, rng), stands_for == 1.0 and len(rows) <= n
        found: list[Rows] = []
        for block in self.search.scan():
            found.append(block)
            if sum(map(len, found)) > n:
                break
        rows = np.concatenate([*found, rows[:0]])
        return _some(rows, n, rng), len(rows) <= n

    def independent_draws(
        self, n: int, rng: np.random.Generator, weights: Weights | None = None
    ) -> Rows | None:
        """`n` valid rows, each drawn from all of them: one as likely as another, or by its weight.

        A row may come again. None where the points cannot be counted exactly; no rows where the
        space has none, or all weigh nothing.
        """
        if self.counted is None:
            return None
        return self.search.completed(*self.counted.draw(n, rng, weights))

    def size(self, most_edges: int = MOST_EDGES) -> SpaceSize:
        """How many valid points there are: exactly wherever they can be counted with that work."""
        counted = CountedPoints.of(self.space, most_edges)
        if counted is not None:
            return SpaceSize(counted.count, is_exact=True)
        rows, about = self.survey(np.random.default_rng(0))
        return SpaceSize(about, is_exact=len(rows) == about)

    def survey(self, rng: np.random.Generator) -> tuple[Rows, float]:
        """Some random rows, and about how many valid points there are: exactly, if as many came."""
        rows, _, stands_for = self.search.beam(rng, _WIDTH)
        return rng.permutation(rows), len(rows) * stands_for

    def enumerate(self, limit: int) -> list[Point] | None:
        """All valid points in the order of the search; None when there are more than `limit`."""
        rows = self.all_rows(limit)
        return None if rows is None else [*self.points(rows)]

    def all_rows(self, limit: int) -> Rows | None:
        """As `enumerate`, as an array."""
        blocks: list[Rows] = [np.empty((0, len(self.names)), dtype=np.int64)]
        count = 0
        for block in self.search.scan():
            count += len(block)
            if count > limit:
                return None
            blocks.append(block)
        return np.concatenate(blocks)

    def scan(self) -> Iterator[Rows]:
        """All valid points in the order of the search, block by block."""
        return self.search.scan()

    # -- around known points -----------------------------------------------------------------------

    def neighbours(
        self, points: Sequence[Point], rng: np.random.Generator, n: int = 16
    ) -> list[Point]:
        """At most `n` other valid points per given one, in one tunable or two coupled ones unlike.

        For each, one tunable must change and one that shares a constraint with it may follow.
        """
        changed = [v for v in self.space.tunables if len(v.domain) > 1]
        if not changed:
            return []
        moves = [changed[i] for i in rng.integers(len(changed), size=2 * n * len(points))]
        owners = len(moves)
        origins = [points[owner % len(points)] for owner in range(owners)]
        allowed = {
            self._index[v.name]: np.asarray([[origin[v.name]] for origin in origins]) == v.domain
            for v in self.space.tunables
        }
        for owner, move in enumerate(moves):
            column = self._index[move.name]
            allowed[column][owner] = ~allowed[column][owner]
            if partners := self._partners[move.name]:
                follower = partners[rng.integers(len(partners))]
                allowed[self._index[follower]][owner] = True
        rows = self._distinct(self._one_each(rng, allowed, owners))
        given = {self.key(point) for point in points}
        others = [at for at, key in enumerate(self.keys(rows)) if key not in given]
        return [*self.points(rows[others[: n * len(points)]])]

    def crossed(
        self,
        mothers: Rows,
        fathers: Rows,
        rng: np.random.Generator,
        *,
        loose_share: float = 0.1,
        held: frozenset[int] | None = None,
    ) -> Rows:
        """Children of pairs of points: at most one valid row per pair.

        A child's tunables have the value of the mother or of the father, except for one random
        tunable and a `loose_share` of the others, which are free: that is the mutation. A few
        children of each pair are drawn whatever the constraints say; where most pairs have no
        valid one among these, those pairs get theirs by constrained crossover. Tunables that are
        not `held` (by position; None: all are) are free as well.
        """
        if not len(mothers) or not self.tunables:
            return mothers[:0]
        if held is not None:
            return self._searched_children(mothers, fathers, rng, loose_share, held)
        children, pairs = self._drawn_children(mothers, fathers, rng, loose_share)
        if 2 * len(children) >= len(mothers):
            return children
        childless = np.delete(np.arange(len(mothers)), pairs)
        more = self._searched_children(mothers[childless], fathers[childless], rng, loose_share)
        return np.concatenate([children, more])

    def mutated(self, rows: Rows, rng: np.random.Generator) -> tuple[Rows, NDArray[np.intp]]:
        """Valid points that differ from rows in one tunable at most, and from which of the rows."""
        if not len(rows) or not self.tunables:
            return rows[:0], np.empty(0, dtype=np.intp)
        return self._drawn_children(rows, rows, rng, 0.0)

    def drawn(
        self, mothers: Rows, fathers: Rows, rng: np.random.Generator, loose_share: float
    ) -> Rows:
        """The valid ones of children that no constraint has guided, a few for each pair."""
        if not len(mothers) or not self.tunables:
            return mothers[:0]
        return self._drawn_children(mothers, fathers, rng, loose_share)[0]

    def _drawn_children(
        self, mothers: Rows, fathers: Rows, rng: np.random.Generator, loose_share: float
    ) -> tuple[Rows, NDArray[np.intp]]:
        """The first valid one of a few children of each pair, and the pairs that have one."""
        pair = np.repeat(np.arange(len(mothers)), _CHILDREN)
        loose = self._loose(len(pair), rng, loose_share)
        of_mother = rng.random(loose.shape) < 0.5
        tunables = np.where(
            of_mother,
            mothers[:, self._tunable_columns][pair],
            fathers[:, self._tunable_columns][pair],
        )
        for t, v in enumerate(self.space.tunables):
            free = loose[:, t]
            tunables[free, t] = rng.choice(v.domain, size=np.count_nonzero(free))
        rows, which = self.search.valid(tunables)
        pairs, first = np.unique(pair[which], return_index=True)
        return rows[first], pairs

    def _searched_children(
        self,
        mothers: Rows,
        fathers: Rows,
        rng: np.random.Generator,
        loose_share: float,
        held: frozenset[int] | None = None,
    ) -> Rows:
        """A child of each pair by the constrained crossover of Heron (ASPLOS 2023).

        Each parent alone satisfies the constraints that are added, so they never leave nothing.
        """
        owners = len(mothers)
        loose = self._loose(owners, rng, loose_share)
        if held is not None:
            loose |= [at not in held for at in range(len(self.tunables))]
        allowed: dict[int, Flags] = {}
        for t, v in enumerate(self.space.tunables):
            column = self._index[v.name]
            domain = np.asarray(v.domain)
            of_parents = (domain == mothers[:, column, None]) | (domain == fathers[:, column, None])
            allowed[column] = of_parents | loose[:, t, None]
        return self._one_each(rng, allowed, owners)

    def _loose(self, children: int, rng: np.random.Generator, share: float) -> Flags:
        """Which tunables of each child are free: one of each, and a share of the others."""
        loose = rng.random((children, len(self.tunables))) < share
        loose[np.arange(children), rng.integers(len(self.tunables), size=children)] = True
        return loose

    def _one_each(self, rng: np.random.Generator, allowed: Allowed, owners: int) -> Rows:
        """A random one of the points found for each owner."""
        rows, owner, _ = self.search.beam(rng, 4, owners=owners, allowed=allowed)
        order = np.lexsort((rng.random(len(rows)), owner))
        _, first = np.unique(owner[order], return_index=True)
        return rows[order[first]]

    @cached_property
    def _partners(self) -> Mapping[str, list[str]]:
        """Tunables that share a constraint with one, in order, for every tunable."""
        found: dict[str, set[str]] = {name: set() for name in self.tunables}
        for constraint in self.space.constraints:
            together = [v for v in variables_of(constraint) if v in found]
            for name in together:
                found[name].update(together)
        return {name: sorted(others - {name}) for name, others in found.items()}

    # -- rows and points ---------------------------------------------------------------------------

    def row(self, point: Point) -> Rows:
        """A point as a row of values."""
        return np.asarray([point[name] for name in self.names], dtype=np.int64)

    def points(self, rows: Rows) -> list[dict[str, int]]:
        """Rows as points."""
        return [dict(zip(self.names, row, strict=True)) for row in rows.tolist()]

    def keys(self, rows: Rows) -> list[Key]:
        """`key` of every row."""
        return [tuple(row) for row in rows[:, self._tunable_columns].tolist()]

    def _distinct(self, rows: Rows) -> Rows:
        return rows[np.sort(distinct(rows[:, self._tunable_columns]))]


def _some(rows: Rows, n: int, rng: np.random.Generator) -> Rows:
    """At most `n` of them in random order; no part of a larger array, which would be kept whole."""
    return rows[rng.permutation(len(rows))[:n]]
