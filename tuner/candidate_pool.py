"""The candidates of a space that were not proposed yet, taken until there are none."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

import numpy as np
from tilefarm.space import Point

from tuner.sampler import Key, Sampler
from tuner.search import Rows

LISTED: Final = 4_000
_STOCK: Final = 384
_TRIES: Final = 3


class CandidatePool:
    """Remembers which candidates are out, and hands out unseen ones.

    A space of at most 4000 points is listed in full; of a larger one a stock of random points is
    kept, and the space is searched from one end to the other only when sampling finds nothing new.

    Args:
        is_uniform: every point of a space that can be counted is as likely as any other. Random
            points are about so without it as well, at less than the time of counting.
    """

    def __init__(
        self, sampler: Sampler, rng: np.random.Generator, *, is_uniform: bool = False
    ) -> None:
        self.sampler = sampler
        self._is_uniform = is_uniform
        self._rng = rng
        self._seen: set[Key] = set()
        self._stock = np.empty((0, len(sampler.names)), dtype=np.int64)
        self._stock_keys: list[Key] = []
        self._positions: dict[Key, int] | None = None
        self._unseen = np.empty(0, dtype=np.bool_)
        self._was_opened = False

    def mark(self, point: Point) -> None:
        """From now on this point is seen."""
        self._mark(self.sampler.key(point))

    @property
    def seen(self) -> AbstractSet[Key]:
        """Keys of all that is seen."""
        return self._seen

    def has_seen(self, point: Point) -> bool:
        return self.sampler.key(point) in self._seen

    def all_rows(self) -> Rows | None:
        """Every row that was unseen when this was first asked; None when there are too many."""
        self._open()
        return None if self._positions is None else self._stock

    def all_unseen(self) -> Rows | None:
        """Every unseen row; None when the space is too large to list."""
        rows = self.all_rows()
        return None if rows is None else rows[self._unseen]

    def unseen(self, rows: Rows) -> Rows:
        """The rows that are unseen, each once, in the same order."""
        fresh: dict[Key, int] = {}
        for i, key in enumerate(self.sampler.keys(rows)):
            if key not in self._seen:
                fresh.setdefault(key, i)
        return rows[list(fresh.values())] if len(fresh) < len(rows) else rows

    def sample(self, n: int) -> Rows:
        """At most n random unseen rows; fewer only when there are no others. They stay unseen."""
        self._open()
        if self._positions is not None:
            rest = np.flatnonzero(self._unseen)
            chosen: Rows = self._stock[self._rng.permutation(rest)[:n]]
            return chosen
        first = self._first(n)
        for attempt in range(_TRIES):
            if len(first) >= n:
                break
            fresh = self._drawn(max(_STOCK, 2 * n) << attempt)
            self._keep(self.unseen(np.concatenate([self._stock[first], fresh])))
            first = self._first(n)
        if len(first) < n:
            self._search_for(n)
            first = self._first(n)
        return self._stock[first]

    def peek(self, n: int, *, leaving: int) -> Rows:
        """As `sample`, but of a large space the first `leaving` ones will be others next time."""
        rows = self.sample(n)
        if self._positions is None:
            self._keep(self.unseen(self._stock)[leaving:])
        return rows

    def take(self, rows: Rows) -> list[Point]:
        """The points of unseen rows, which are seen from now on."""
        for key in self.sampler.keys(rows):
            self._mark(key)
        return [*self.sampler.points(rows)]

    def _keep(self, rows: Rows) -> None:
        """These distinct rows are the stock; some of them may be seen by and by."""
        self._stock, self._stock_keys = rows, self.sampler.keys(rows)

    def _first(self, n: int) -> list[int]:
        """Where in the stock the first n unseen rows are: all of them if there are no n."""
        unseen = (at for at, key in enumerate(self._stock_keys) if key not in self._seen)
        return [*islice(unseen, n)]

    def _mark(self, key: Key) -> None:
        self._seen.add(key)
        at = None if self._positions is None else self._positions.get(key)
        if at is not None:
            self._unseen[at] = False

    def _open(self) -> None:
        """Lists a small space, once and when first needed. The surveyed rows are a first stock."""
        if self._was_opened:
            return
        self._was_opened = True
        if self._is_uniform:
            about = self.sampler.size().points
        else:
            surveyed, about = self.sampler.survey(self._rng)
            self._keep(self.unseen(surveyed))
        rows = self.sampler.all_rows(LISTED) if about < 2 * LISTED else None
        if rows is not None:
            self._keep(self.unseen(rows))
            self._positions = {key: at for at, key in enumerate(self._stock_keys)}
            self._unseen = np.ones(len(self._stock), dtype=np.bool_)

    def _drawn(self, n: int) -> Rows:
        rows = self.sampler.independent_draws(n, self._rng) if self._is_uniform else None
        return self.sampler.draw(n, self._rng)[0] if rows is None else rows

    def _search_for(self, n: int) -> None:
        """Completes the stock by searching the whole space; nothing unseen can hide from that."""
        for block in self.sampler.scan():
            self._keep(self.unseen(np.concatenate([self._stock, block])))
            if len(self._stock) >= n:
                return
