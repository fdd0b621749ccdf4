"""Images and values: how much of the truth's variation is met, and by how much answers are off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.accuracy.measure import Measure
from driver.graph.parts import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class Reals:
    """Numbers: the first output's values, pixels of `images` or any others."""

    images: bool

    def of_labels(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        """The numbers [samples, values]."""
        return labels.reshape(len(labels), -1).astype(np.float64)

    def of_answers(self, answers: Arrays) -> NDArray[np.float64]:
        """The same, as the network says."""
        return self.of_labels(next(iter(answers.values())))

    def measures(self, truth: NDArray[np.float64], answers: Arrays) -> tuple[Measure, ...]:
        """R2 (1 less the squared error's share of the variance), and error or PSNR."""
        off = self.of_answers(answers) - truth
        error, variance = float((off**2).mean()), float(truth.var())
        met = 1.0 - error / variance if variance else 1.0 if not error else None
        found = [Measure(name="R2", unit="%", value=None if met is None else 100 * met)]
        if self.images:
            peak = float(truth.max() - truth.min())
            found.append(Measure(name="PSNR", unit="dB", value=_psnr(peak, error)))
        found.append(Measure(name="mean error", unit="", value=float(np.abs(off).mean())))
        return tuple(found)


def _psnr(peak: float, error: float) -> float | None:
    """Of a squared error, where the truth reaches over `peak`; None where it is flat."""
    if not error:
        return math.inf
    return 10 * math.log10(peak**2 / error) if peak else None
