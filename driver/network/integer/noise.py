"""How far one tensor is from what it should be: signal, noise, and their ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What quantization did to one tensor, over all samples.

    Attributes:
        signal: sum of the squares of the float values.
        noise: sum of the squares of what the integer network's values differ by.
        largest: the largest of these differences.
    """

    signal: float = 0.0
    noise: float = 0.0
    largest: float = 0.0

    @property
    def ratio_db(self) -> float:
        """Signal to quantization noise, decibels; infinite where nothing differs."""
        if not self.noise:
            return math.inf
        return 10 * math.log10(self.signal / self.noise) if self.signal else -math.inf

    def __add__(self, other: Noise) -> Noise:
        return Noise(
            signal=self.signal + other.signal,
            noise=self.noise + other.noise,
            largest=max(self.largest, other.largest),
        )


def noise_between(values: NDArray[Any], answer: NDArray[Any]) -> Noise:
    """The noise of `answer` as a copy of `values`, of the same shape."""
    wanted = values.astype(np.float64)
    off = answer.astype(np.float64) - wanted
    return Noise(
        signal=float((wanted**2).sum()),
        noise=float((off**2).sum()),
        largest=float(np.abs(off).max(initial=0.0)),
    )
