"""The points of a space that were not proposed yet: drawn like cards, until there are none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from tilefarm.space import Point

from tuner.sampler import Sampler
from tuner.search import Rows

_LISTED: Final = 10_000
_TRIES: Final = 3


class Deck:
    """Remembers which candidates are out, and deals unseen ones.

    A space of at most 10 000 points is listed in full; a larger one is sampled, and searched from
    one end to the other only when sampling finds nothing new.
    """

    def __init__(self, sampler: Sampler, rng: np.random.Generator) -> None:
        self.sampler = sampler
        self._rng = rng
        self._seen: set[tuple[int, ...]] = set()
        self._all: Rows | None = None
        self._counted = False
        self._scanned_out = False

    def mark(self, point: Point) -> None:
        """From now on this point is seen."""
        self._seen.add(self.sampler.key(point))

    def has_seen(self, point: Point) -> bool:
        return self.sampler.key(point) in self._seen

    def all_unseen(self) -> Rows | None:
        """Every unseen row; None when the space is too large to list."""
        if not self._counted:
            self._all, self._counted = self.sampler.all_rows(_LISTED), True
        if self._all is None:
            return None
        self._all = self.unseen(self._all)
        return self._all

    def unseen(self, rows: Rows) -> Rows:
        """The rows that are unseen, each once, in the same order."""
        fresh: dict[tuple[int, ...], int] = {}
        for i, key in enumerate(self.sampler.keys(rows)):
            if key not in self._seen:
                fresh.setdefault(key, i)
        return rows[list(fresh.values())] if len(fresh) < len(rows) else rows

    def draw(self, n: int) -> Rows:
        """At most n random unseen rows; fewer only when there are no others. They stay unseen."""
        rest = self.all_unseen()
        if rest is not None:
            return rest[self._rng.permutation(len(rest))[:n]]
        found: Rows = np.empty((0, len(self.sampler.names)), dtype=np.int64)
        for attempt in range(_TRIES):
            rows, _ = self.sampler.draw(4 * n << attempt, self._rng)
            found = self.unseen(np.concatenate([found, rows]))
            if len(found) >= n:
                return found[:n]
        return self._scanned(n, found)

    def deal(self, rows: Rows) -> list[Point]:
        """The points of unseen rows, which are seen from now on."""
        points = self.sampler.points(rows)
        for point in points:
            self.mark(point)
        return [*points]

    def _scanned(self, n: int, found: Rows) -> Rows:
        """Completes a draw by searching the whole space; what sampling missed cannot hide there."""
        blocks: Iterable[Rows] = () if self._scanned_out else self.sampler.scan()
        for block in blocks:
            found = self.unseen(np.concatenate([found, block]))
            if len(found) >= n:
                return found[:n]
        self._scanned_out = True
        return found
