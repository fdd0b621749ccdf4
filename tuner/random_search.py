"""Random search: unseen valid points, one as likely as another. The template for new proposers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tilefarm.measurement import Trial
from tilefarm.space import Point, SearchSpace

from tuner.candidate_pool import CandidatePool
from tuner.sampler import Sampler


class RandomSearch:
    """Learns nothing from trials but what not to ask again."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._candidates = CandidatePool(Sampler(space), rng, is_uniform=True)

    def ask(self, n: int) -> list[Point]:
        return self._candidates.take(self._candidates.sample(n))

    def tell(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            self._candidates.mark(dict(trial.point))
