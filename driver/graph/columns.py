"""Sliding windows as matrices: a convolution becomes one multiplication that BLAS does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.graph.ir import Window

_CHUNK_NBYTES = 16 << 20


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


def correlate(x: NDArray[Any], weight: NDArray[Any], window: Window) -> NDArray[Any]:
    """The sums of a convolution, [N, Co, OH, OW], in the element type of `weight`."""
    kernel = weight.reshape(weight.shape[0], -1)
    parts = [_one_product(part, kernel, window) for part in _sample_chunks(x, kernel, window)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _one_product(x: NDArray[Any], kernel: NDArray[Any], window: Window) -> NDArray[Any]:
    view = patches(padded(x.astype(kernel.dtype, copy=False), window), window)
    n, c, oh, ow, kh, kw = view.shape
    columns = view.transpose(1, 4, 5, 0, 2, 3).reshape(c * kh * kw, n * oh * ow)
    sums = np.asarray(kernel @ columns)
    return sums.reshape(-1, n, oh, ow).transpose(1, 0, 2, 3)


def _sample_chunks(x: NDArray[Any], kernel: NDArray[Any], window: Window) -> Iterator[NDArray[Any]]:
    """Groups of samples whose columns stay small enough for the caches and for memory."""
    oh, ow = window.positions(x.shape[2], x.shape[3])
    one = oh * ow * kernel.shape[1] * kernel.itemsize
    step = max(1, _CHUNK_NBYTES // max(1, one))
    for start in range(0, max(1, x.shape[0]), step):
        yield x[start : start + step]
