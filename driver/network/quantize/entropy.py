"""The range whose int8 levels lose the least information: Kullback-Leibler over a histogram.

Source: S. Migacz, 8-bit inference with TensorRT, GTC 2017. A divergence counts how often values
occur, not how far they are clipped: beside a background that most elements have, it would clip what
the network looks at. So no range is taken that leaves more squared error than covering all values
does, or hardly more.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from driver.network.quantize.histograms import BINS, Histogram

_LEVELS: Final = 128
"""Magnitudes of int8."""
_STEP: Final = 16
"""Bins from one candidate to the next."""
_MOST_ERROR: Final = 2.0
"""Times the squared error of covering all values: half a bit, which a distribution may be worth."""
_NEARLY_NOTHING: Final = 1e-9
"""The share of a bin that the levels leave empty: its logarithm is finite."""


def entropy_range(histogram: Histogram) -> float:
    """The range of least divergence, the largest of equals; 0 where nothing was counted.

    What lies beyond a range is clipped into its last bin. Ranges whose squared error is more than
    `_MOST_ERROR` times that of covering all values are none.
    """
    if not histogram.counts.any():
        return 0.0
    last = int(np.flatnonzero(histogram.counts)[-1]) + 1
    ends = [*range(_LEVELS, min(last, BINS), _STEP), last]
    most = _MOST_ERROR * squared_error(histogram.counts, last)
    ends = [end for end in ends if squared_error(histogram.counts, end) <= most]
    best: int = min(reversed(ends), key=lambda end: divergence(histogram.counts, end))
    return min(best * histogram.width, histogram.reach)


def squared_error(counts: NDArray[np.int64], end: int) -> float:
    """What int8 levels over the first `end` bins are wrong by: the sum of squares, in bins.

    Rounding to a level is a twelfth of its square; what lies beyond is clipped to the end.
    """
    beyond = np.arange(len(counts) - end) + 0.5
    rounding = counts[:end].sum() * (end / _LEVELS) ** 2 / 12
    return float(rounding + (counts[end:] * np.square(beyond)).sum())


def divergence(counts: NDArray[np.int64], end: int) -> float:
    """What int8 levels over the first `end` bins lose of the distribution, in nats."""
    clipped = counts[:end].astype(np.float64)
    inside = clipped.sum()
    clipped[-1] += counts[end:].sum()
    occupied = clipped > 0
    level = np.arange(end) * _LEVELS // end
    held = np.bincount(level, weights=counts[:end], minlength=_LEVELS)
    sharing = np.bincount(level, weights=occupied, minlength=_LEVELS)
    evenly = (held / np.maximum(sharing, 1))[level][occupied] / max(inside, 1.0)
    real = clipped[occupied] / clipped.sum()
    return float((real * np.log(real / np.maximum(evenly, _NEARLY_NOTHING))).sum())
