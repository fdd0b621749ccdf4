"""Evolution on measured cost: constrained crossover of the best candidates, no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from tilefarm.measurement import Trial
from tilefarm.space import Point, SearchSpace

from tuner.candidate_pool import CandidatePool
from tuner.measured_rows import MeasuredRows
from tuner.sampler import Sampler
from tuner.search import Rows

_PARENTS: Final = 16
_FIRST_GENERATION: Final = 12
_EXPLORE_SHARE: Final = 0.15
"""Parents are the best so far; random points come first, until there are enough to choose from, and
then in this share, so that no valley holds the search for good."""


class Evolution:
    """Children of the best measured points (CGA, Heron section 5) and a share of random points."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._sampler = Sampler(space)
        self._candidates = CandidatePool(self._sampler, self._rng)
        self._measured = MeasuredRows(self._sampler, self._candidates)

    def ask(self, n: int) -> list[Point]:
        bred = self._rng.binomial(n, 1 - _EXPLORE_SHARE) if self._is_mature else 0
        points = self._candidates.take(self._children(bred)[:bred])
        return points + self._candidates.take(self._candidates.sample(n - len(points)))

    def tell(self, trials: Sequence[Trial]) -> None:
        self._measured.tell(trials)

    @property
    def _is_mature(self) -> bool:
        return len(self._measured) >= _FIRST_GENERATION

    def _children(self, n: int) -> Rows:
        parents = self._measured.rows[:_PARENTS]
        if not n:
            return np.empty((0, len(self._sampler.names)), dtype=np.int64)
        pairs = np.minimum(
            self._rng.integers(len(parents), size=(2, 4 * n)),
            self._rng.integers(len(parents), size=(2, 4 * n)),
        )
        children = self._sampler.crossed(parents[pairs[0]], parents[pairs[1]], self._rng)
        return self._candidates.unseen(self._rng.permutation(children))
