"""Row-major tensors as the kernels on float32 see them: fewer axes, and places of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from driver.network.graph.ir import IndexArray, Shape


def flat(shape: Shape) -> Shape:
    """[N, ...] as [N, M]."""
    return shape[0], math.prod(shape[1:])


def places_of(shape: Shape) -> IndexArray:
    """The row-major places of the elements of a sample, in the shape of one."""
    return np.arange(math.prod(shape[1:]), dtype=np.int32).reshape(shape[1:])


def with_last(shape: Shape, axes: Sequence[int]) -> IndexArray:
    """The places of a sample's elements when some axes go behind all others."""
    kept = [axis - 1 for axis in range(1, len(shape)) if axis not in axes]
    return places_of(shape).transpose(*kept, *(axis - 1 for axis in sorted(axes)))


def merged(a: Shape, b: Shape, wanted: Shape) -> tuple[Shape, Shape, Shape]:
    """The shapes of two operands and of their result with as few axes as possible, two at least.

    Neighbouring axes are one where the same operand is repeated along them, or none:
    [2, 3, 4, 5] and [2, 3, 1, 1] are [6, 20] and [6, 1].
    """
    rows: list[tuple[int, ...]] = []
    before: tuple[bool, bool] | None = None
    for m, n, extent in zip(a, b, wanted, strict=True):
        if extent == 1:
            continue
        repeated = (m < extent, n < extent)
        if repeated == before:
            rows[-1] = tuple(map(math.prod, zip(rows[-1], (m, n, extent), strict=True)))
        else:
            rows.append((m, n, extent))
        before = repeated
    while len(rows) < 2:
        rows.insert(0, (1, 1, 1))
    first, second, both = zip(*rows, strict=True)
    return tuple(first), tuple(second), tuple(both)
