"""Images and values: how much of the truth's variation is met, and by how much answers are off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from driver.network.accuracy.metric import Metric
from driver.network.graph.parts import Arrays

SAMPLES_AT_ONCE: Final = 16
"""In float64, which is twice as large as what networks answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reals:
    """Numbers: the first output's values, pixels of `images` or any others."""

    images: bool

    def of_labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        """The numbers [samples, values]."""
        return labels.reshape(len(labels), -1)

    def of_answers(self, answers: Arrays) -> NDArray[Any]:
        """The same, as the network says."""
        return self.of_labels(next(iter(answers.values())))

    def measures(self, truth: NDArray[Any], answers: Arrays) -> tuple[Metric, ...]:
        """R2 (1 less the squared error's share of the variance), and error or PSNR."""
        with np.errstate(invalid="ignore"):
            off, mean = _Sums(), float(truth.mean(dtype=np.float64))
            for start in range(0, len(truth), SAMPLES_AT_ONCE):
                part = slice(start, start + SAMPLES_AT_ONCE)
                off.add(truth[part], self.of_answers(answers)[part], mean)
        error = off.squares / truth.size
        met = 1 - off.squares / off.variation if off.variation else 0.0 if off.squares else 1.0
        known = off.variation > 0 or not off.squares
        found = [Metric(name="R2", unit="%", value=_finite(100 * met) if known else None)]
        if self.images:
            found.append(Metric(name="PSNR", unit="dB", value=_psnr(float(np.ptp(truth)), error)))
        found.append(Metric(name="mean error", unit="", value=_finite(off.magnitudes / truth.size)))
        return tuple(found)


@dataclass(slots=True)
class _Sums:
    """Of errors and of the truth's distance from its mean, some samples at a time."""

    squares: float = 0.0
    magnitudes: float = 0.0
    variation: float = 0.0

    def add(self, truth: NDArray[Any], found: NDArray[Any], mean: float) -> None:
        wanted = truth.astype(np.float64)
        off = found.astype(np.float64) - wanted
        self.squares += float((off**2).sum())
        self.magnitudes += float(np.abs(off).sum())
        self.variation += float(((wanted - mean) ** 2).sum())


def _finite(value: float) -> float | None:
    """Nothing in place of what is no number, as where answers are infinite."""
    return value if math.isfinite(value) else None


def _psnr(peak: float, error: float) -> float | None:
    """Of a squared error, where the truth reaches over `peak`; None where it is flat."""
    if not error:
        return math.inf
    return 10 * math.log10(peak**2 / error) if peak and math.isfinite(peak / error) else None
