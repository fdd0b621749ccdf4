"""Grid search: every point of the space in a fixed order that covers it coarsely first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Final

import numpy as np
from tilefarm.measurement import Trial
from tilefarm.space import Point, SearchSpace

from tuner.candidate_pool import CandidatePool
from tuner.sampler import Sampler
from tuner.search import Rows

_LISTED: Final = 100_000
_BLOCK: Final = 256


class GridSearch:
    """Walks the listed points in bit-reversed order, so that a short walk is spread over all.

    A space of more than 100 000 points is walked by `Search.evenly` instead, which is spread over
    all of it as well, and in the order of the search when that finds hardly anything new. The seed
    is not used: a grid has no chance in it.
    """

    def __init__(self, space: SearchSpace, seed: int = 0) -> None:
        self._sampler = Sampler(space)
        self._candidates = CandidatePool(self._sampler, np.random.default_rng(seed))
        self._walk = self._points()

    def ask(self, n: int) -> list[Point]:
        found: list[Point] = []
        while len(found) < n:
            point = next(self._walk, None)
            if point is None:
                break
            if not self._candidates.has_seen(point):
                self._candidates.mark(point)
                found.append(point)
        return found

    def tell(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            self._candidates.mark(dict(trial.point))

    def _points(self) -> Iterator[Point]:
        rows = self._sampler.all_rows(_LISTED)
        blocks: Iterable[Rows] = [spread(rows)] if rows is not None else self._large()
        for block in blocks:
            for row in block:
                yield from self._sampler.points(row[None])

    def _large(self) -> Iterator[Rows]:
        """An even walk until most of a block is known, then all there is."""
        for first in count(0, _BLOCK):
            block = self._candidates.unseen(self._sampler.search.evenly(first, _BLOCK))
            yield block
            if 2 * len(block) < _BLOCK:
                break
        yield from self._sampler.scan()


def spread(rows: Rows) -> Rows:
    """Rows in bit-reversed order of their positions: 0, 1/2, 1/4, 3/4, 1/8, … of the way."""
    bits = max(1, int(len(rows) - 1).bit_length())
    order = [int(f"{i:0{bits}b}"[::-1], 2) for i in range(1 << bits)]
    return rows[[i for i in order if i < len(rows)]]
