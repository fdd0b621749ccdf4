"""The points of a space that were not proposed yet: drawn like cards, until there are none."""

from __future__ import annotations

from typing import Final

import numpy as np
from tilefarm.space import Point

from tuner.sampler import Sampler
from tuner.search import Rows

_LISTED: Final = 4_000
_STOCK: Final = 384
_TRIES: Final = 3


class Deck:
    """Remembers which candidates are out, and deals unseen ones.

    A space of at most 4000 points is listed in full; of a larger one a stock of random points is
    kept, and the space is searched from one end to the other only when sampling finds nothing new.
    """

    def __init__(self, sampler: Sampler, rng: np.random.Generator) -> None:
        self.sampler = sampler
        self._rng = rng
        self._seen: set[tuple[int, ...]] = set()
        self._stock = np.empty((0, len(sampler.names)), dtype=np.int64)
        self._positions: dict[tuple[int, ...], int] | None = None
        self._unseen = np.empty(0, dtype=np.bool_)
        self._was_opened = False

    def mark(self, point: Point) -> None:
        """From now on this point is seen."""
        self._mark(self.sampler.key(point))

    def has_seen(self, point: Point) -> bool:
        return self.sampler.key(point) in self._seen

    def all_unseen(self) -> Rows | None:
        """Every unseen row; None when the space is too large to list."""
        self._open()
        return None if self._positions is None else self._stock[self._unseen]

    def unseen(self, rows: Rows) -> Rows:
        """The rows that are unseen, each once, in the same order."""
        fresh: dict[tuple[int, ...], int] = {}
        for i, key in enumerate(self.sampler.keys(rows)):
            if key not in self._seen:
                fresh.setdefault(key, i)
        return rows[list(fresh.values())] if len(fresh) < len(rows) else rows

    def draw(self, n: int) -> Rows:
        """At most n random unseen rows; fewer only when there are no others. They stay unseen."""
        self._open()
        if self._positions is not None:
            rest = np.flatnonzero(self._unseen)
            chosen: Rows = self._stock[self._rng.permutation(rest)[:n]]
            return chosen
        self._stock = self.unseen(self._stock)
        for attempt in range(_TRIES):
            if len(self._stock) >= n:
                break
            fresh, _ = self.sampler.draw(max(_STOCK, 2 * n) << attempt, self._rng)
            self._stock = self.unseen(np.concatenate([self._stock, fresh]))
        if len(self._stock) < n:
            self._search_for(n)
        return self._stock[:n]

    def glance(self, n: int, *, leaving: int) -> Rows:
        """As `draw`, but of a large space the first `leaving` ones will be others next time."""
        rows = self.draw(n)
        if self._positions is None:
            self._stock = self._stock[leaving:]
        return rows

    def deal(self, rows: Rows) -> list[Point]:
        """The points of unseen rows, which are seen from now on."""
        for key in self.sampler.keys(rows):
            self._mark(key)
        return [*self.sampler.points(rows)]

    def _mark(self, key: tuple[int, ...]) -> None:
        self._seen.add(key)
        at = None if self._positions is None else self._positions.get(key)
        if at is not None:
            self._unseen[at] = False

    def _open(self) -> None:
        """Lists a small space, once and when first needed. The surveyed rows are a first stock."""
        if self._was_opened:
            return
        self._was_opened = True
        self._stock, about = self.sampler.survey(self._rng)
        rows = self.sampler.all_rows(_LISTED) if about < 2 * _LISTED else None
        if rows is not None:
            self._stock = self.unseen(rows)
            self._positions = {k: at for at, k in enumerate(self.sampler.keys(self._stock))}
            self._unseen = np.ones(len(self._stock), dtype=np.bool_)

    def _search_for(self, n: int) -> None:
        """Completes the stock by searching the whole space; nothing unseen can hide from that."""
        for block in self.sampler.scan():
            self._stock = self.unseen(np.concatenate([self._stock, block]))
            if len(self._stock) >= n:
                return
