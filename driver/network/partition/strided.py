"""Indices that are even: what they take lies at one distance along every axis, so none is needed.

index 0 4 8 1 5 9   ->   i in 0:2, j in 0:3: place i*1 + j*4
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driver.network.graph.ir import IndexArray, Shape
from driver.network.rewrites.rearranged import digits_of


@dataclass(frozen=True, slots=True)
class Strided:
    """Axes that an index walks along, the slowest first: how long, and at which distances."""

    extents: Shape
    strides: Shape
    offset: int


def strided_form(index: IndexArray) -> Strided | None:
    """What a flat index does, if that is even; none of its places is absent."""
    if not index.size or index.min() < 0:
        return None
    digits = digits_of(np.asarray(index - index[0], np.int32))
    if digits is None:
        return None
    extents = tuple(extent for _, extent in digits) or (1,)
    strides = tuple(stride for stride, _ in digits) or (1,)
    places = sum(
        np.arange(extent, dtype=np.int32).reshape(-1, *(1,) * (len(extents) - 1 - axis)) * stride
        for axis, (extent, stride) in enumerate(zip(extents, strides, strict=True))
    )
    is_even = np.array_equal(np.reshape(places, -1) + index[0], index)
    return Strided(extents, strides, int(index[0])) if is_even else None
