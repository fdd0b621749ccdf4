"""How often each magnitude of a tensor occurs, counted in pieces within bounded memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.ir import FloatArray

BINS: Final = 2048
"""Even, so that two neighbours make one bin of twice the width."""


@dataclass(slots=True)
class Histogram:
    """Counts of magnitudes other than zero, which every scale represents exactly.

    Bin i counts [i, i + 1) * width. The width is the least power of two that fits the largest
    magnitude: bins only ever merge whole, so the counts do not depend on how the values came.

    Attributes:
        reach: the largest magnitude, exactly.
        width: of a bin; 0 while nothing has been counted.
        counts: int64 [BINS].
    """

    reach: float = 0.0
    width: float = 0.0
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def add(self, values: FloatArray) -> None:
        """Counts finite values of any shape."""
        magnitudes = np.abs(values, dtype=np.float64).ravel()
        magnitudes = magnitudes[magnitudes > 0]
        if not magnitudes.size:
            return
        self._widen(float(magnitudes.max()))
        bins = (magnitudes / self.width).astype(np.int64)
        self.counts += np.bincount(bins, minlength=BINS)

    def _widen(self, reach: float) -> None:
        """Merges bins until that magnitude has one."""
        self.reach = max(self.reach, reach)
        needed = math.ldexp(1.0, math.frexp(self.reach)[1]) / BINS
        self.width = self.width or needed
        while self.width < needed:
            pairs = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts = np.concatenate([pairs, np.zeros(BINS // 2, np.int64)])
            self.width *= 2


def percentile(histogram: Histogram, percent: float) -> float:
    """The least end of a bin that covers so many percent of the counted magnitudes; 0 of none."""
    cumulated = np.cumsum(histogram.counts)
    if not cumulated[-1]:
        return 0.0
    covered = int(np.searchsorted(cumulated, cumulated[-1] * (percent / 100))) + 1
    return min(covered * histogram.width, histogram.reach)
