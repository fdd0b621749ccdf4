"""Weights of windows of three columns as minimal filtering takes them, F(4, 3), and back again.

    g0 g1 g2   ->   6*g0, -4*(g0+g1+g2), -4*(g0-g1+g2), g0+2*g1+4*g2, g0-2*g1+4*g2, 24*g2

These are 24 times the filters of A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural
Networks", 2016: whole numbers, which sums of products of whole numbers are exact with.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

COLUMNS: Final = 3
"""Of the windows."""

_FILTERS: Final = np.array(
    [[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]], np.int16
)


def points_of(taps: NDArray[np.int8]) -> NDArray[np.int16]:
    """[..., 3] as [..., 6]."""
    return np.asarray(taps.astype(np.int16) @ _FILTERS.T)


def taps_of(points: NDArray[Any]) -> NDArray[np.int8]:
    """[..., 6] as [..., 3].

    Raises:
        ValueError: they are the points of no taps of int8.
    """
    first, last = points[..., 0] // 6, points[..., 5] // 24
    taps = np.stack((first, (points[..., 3] - first - 4 * last) // 2, last), axis=-1)
    narrow = taps.astype(np.int8)
    if not np.array_equal(points_of(narrow), points):
        raise ValueError("weights of int16 that no taps of int8 have given")
    return narrow
