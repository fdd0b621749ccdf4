"""Sliding windows as matrices: a convolution becomes multiplications that BLAS does."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.ir import Window

COLUMNS_NBYTES: Final = 4 << 20
"""Of the columns that are multiplied at a time: caches hold them from their making to their use."""
ROWS_ELEMENTS: Final = 1 << 17
"""Of a matrix of weights that is in float at a time: a mebibyte, which caches hold."""


def padded(x: NDArray[Any], window: Window, value: float = 0) -> NDArray[Any]:
    """`x` [N, C, H, W] with the window's padding around it."""
    top, left, bottom, right = window.pad
    if not any(window.pad):
        return x
    return np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=value)


def patches(x: NDArray[Any], window: Window) -> NDArray[Any]:
    """A view [N, C, OH, OW, Kh, Kw] of the elements under every place of the window.

    `x` is already padded.
    """
    (kh, kw), (dh, dw), (sh, sw) = window.kernel, window.dilation, window.stride
    reach = (dh * (kh - 1) + 1, dw * (kw - 1) + 1)
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(2, 3))
    return view[:, :, ::sh, ::sw, ::dh, ::dw]


def pooled(x: NDArray[Any], window: Window, combine: np.ufunc) -> NDArray[Any]:
    """[N, C, OH, OW]: all elements under every place of the window, combined.

    `x` is already padded. Rows are combined first and columns then, so a window of 3 x 3 takes four
    operations on whole arrays; `combine` is np.maximum or np.add.
    """
    sides = zip((2, 3), window.kernel, window.stride, window.dilation, strict=True)
    for axis, kernel, stride, dilation in sides:
        places = (x.shape[axis] - dilation * (kernel - 1) - 1) // stride + 1
        last = (places - 1) * stride + 1
        taps = (
            x[(slice(None),) * axis + (slice(first, first + last, stride),)]
            for first in range(0, kernel * dilation, dilation)
        )
        x = reduce(combine, taps)
    return x


def correlate_groups(
    x: NDArray[Any], weight: NDArray[Any], window: Window, groups: int
) -> NDArray[Any]:
    """The sums of a convolution in groups, [N, Co, OH, OW], in the element type of `weight`."""
    if groups == 1:
        return correlate(x, weight, window)
    if weight.shape[1] == 1:
        return _one_by_one(x, weight, window)
    parts = zip(np.split(x, groups, axis=1), np.split(weight, groups), strict=True)
    return np.concatenate([correlate(part, kernel, window) for part, kernel in parts], axis=1)


def _one_by_one(x: NDArray[Any], weight: NDArray[Any], window: Window) -> NDArray[Any]:
    """Every output channel reads one input channel: tap by tap, all channels at once."""
    co = weight.shape[0]
    wide = np.repeat(x.astype(weight.dtype, copy=False), co // x.shape[1], axis=1)
    view = patches(padded(wide, window), window)
    sums = np.zeros(view.shape[:4], weight.dtype)
    for tap in np.ndindex(window.kernel):
        sums += view[..., tap[0], tap[1]] * weight[:, 0, tap[0], tap[1]][:, None, None]
    return sums


def correlate_phases(
    x: NDArray[Any], weight: NDArray[Any], pad: tuple[int, int, int, int]
) -> NDArray[Any]:
    """The sums of a transposed convolution; weight [Co, Sh, Sw, Ci, Kh, Kw]."""
    co, down, across, _, *kernel = weight.shape
    window = Window(kernel=(kernel[0], kernel[1]), pad=pad)
    rows, columns = window.positions(x.shape[2], x.shape[3])
    sums = np.zeros((x.shape[0], co, rows * down, columns * across), weight.dtype)
    for p, q in np.ndindex(down, across):
        sums[:, :, p::down, q::across] = correlate(x, weight[:, p, q], window)
    return sums


def correlate(x: NDArray[Any], weight: NDArray[Any], window: Window) -> NDArray[Any]:
    """The sums of a convolution, [N, Co, OH, OW], in the element type of `weight`."""
    kernel = weight.reshape(weight.shape[0], -1)
    oh, ow = window.positions(x.shape[2], x.shape[3])
    sums = np.empty((x.shape[0], len(kernel), oh, ow), kernel.dtype)
    places = COLUMNS_NBYTES // max(1, kernel.shape[1] * kernel.itemsize)
    for samples in _runs(x.shape[0], places // max(1, oh * ow)):
        view = patches(padded(x[samples].astype(kernel.dtype, copy=False), window), window)
        for rows in _runs(oh, places // max(1, ow)):
            sums[samples, :, rows] = _one_product(view[:, :, rows], kernel)
    return sums


def _one_product(view: NDArray[Any], kernel: NDArray[Any]) -> NDArray[Any]:
    """[N, Co, OH, OW] of the elements under every place of the window and the weights [Co, K]."""
    n, _, oh, ow, _, _ = view.shape
    columns = view.transpose(1, 4, 5, 0, 2, 3).reshape(kernel.shape[1], n * oh * ow)
    # OpenBLAS may say so of lanes beyond small matrices (numpy/numpy#24067, OpenBLAS#1924).
    with np.errstate(invalid="ignore"):
        sums = np.asarray(kernel @ columns)
    return sums.reshape(-1, n, oh, ow).transpose(1, 0, 2, 3)


def _runs(count: int, most: int) -> Iterator[slice]:
    """0..`count` in order, at most so many together, but at least one."""
    step = max(1, most)
    for start in range(0, count, step):
        yield slice(start, start + step)


def weighted(x: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
    """The sums [N, Co] of x [N, Ci] and weight [Co, Ci], in the element type of `x`.

    Weights get that type some rows at a time: they are up to eight times as large then.
    """
    sums = np.empty((len(x), len(weight)), x.dtype)
    for rows in _runs(len(weight), ROWS_ELEMENTS // max(1, weight.shape[1])):
        np.matmul(x, weight[rows].astype(x.dtype, copy=False).T, out=sums[:, rows])
    return sums


def multiplied(a: NDArray[Any], b: NDArray[Any], groups: int) -> NDArray[Any]:
    """[N, G*I, J] of a [N, G*K, I] and b [N, G*K, J]: sums over the channels of a group."""
    n, channels, columns = b.shape
    left, right = (x.reshape(n, groups, channels // groups, x.shape[2]) for x in (a, b))
    return np.asarray(left.swapaxes(2, 3) @ right).reshape(n, -1, columns)


def gathered(x: NDArray[Any], index: NDArray[np.int32], fill: float = 0) -> NDArray[Any]:
    """[N, *index.shape]: elements of every x[n] by row-major places; `fill` where there is none."""
    flat = x.reshape(x.shape[0], -1)
    exists = (index >= 0) & (index < flat.shape[1])
    return np.asarray(np.where(exists, flat[:, np.where(exists, index, 0)], flat.dtype.type(fill)))


def taken(places: NDArray[np.float32], x: NDArray[Any]) -> NDArray[Any]:
    """[N, C, K]: columns of x [N or 1, C, V] at places [N, K], see `graph.ir.Take`."""
    count = x.shape[2]
    from_start = np.where(places < 0, places + np.float32(count), places)
    above = np.where(from_start > 0, from_start, np.float32(0))  # which NaN is not
    index = np.minimum(above, count - 1).astype(np.int64)
    if x.shape[0] == 1:
        return np.ascontiguousarray(x[0][:, index].swapaxes(0, 1))
    return np.take_along_axis(x, index[:, None, :], axis=2)
