"""What a search without a model knows: rows of its space by their costs, the cheapest first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tilefarm.measurement import Trial

from tuner.candidate_pool import CandidatePool
from tuner.sampler import Sampler
from tuner.search import Rows


class MeasuredRows:
    """The rows that were measured; of equal costs the one that was told first.

    Args:
        most: how many are kept; None: all.
    """

    def __init__(
        self, sampler: Sampler, candidates: CandidatePool, most: int | None = None
    ) -> None:
        self._sampler = sampler
        self._candidates = candidates
        self._most = most
        self._measured: list[tuple[float, Rows]] = []

    def __len__(self) -> int:
        return len(self._measured)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Take trials in; none of them is a candidate any more, however it ended."""
        for trial in trials:
            point = dict(trial.point)
            self._candidates.mark(point)
            full = self._sampler.complete(point)
            if (cost := trial.cost) is not None and full is not None:
                self._measured.append((cost, self._sampler.row(full)))
        self._measured.sort(key=lambda pair: pair[0])
        if self._most is not None:
            del self._measured[self._most :]

    @property
    def costs(self) -> NDArray[np.float64]:
        return np.asarray([cost for cost, _ in self._measured])

    @property
    def rows(self) -> Rows:
        return np.asarray([row for _, row in self._measured])
