"""Right answers of the accelerator's operators, on blocked arrays [N/b, C/c, ..., b, c].

`tilefarm.workload.OPERATORS` says what each one means. Sums are int32 and wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.workload import PLANE, Workload

from driver.network.graph.columns import correlate, padded, pooled
from driver.network.graph.ir import Window
from driver.network.integer.arithmetic import exact, half, narrowed, products, wrapped
from driver.network.integer.blocks import from_blocks, to_blocks, weight_from_blocks
from driver.network.integer.borders import surrounded
from driver.network.integer.workload_window import window_of

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = Mapping[str, Array]


def conv2d(workload: Workload, arrays: Arrays) -> Array:
    """A convolution, in groups of blocks or not, with its epilogue, maybe within a border."""
    window = window_of(workload, arrays["weight"].shape[-4:-2])
    sums = [
        [_of_groups(data, weight, window) for weight in _planes(arrays["weight"], workload.planes)]
        for data in _planes(arrays["data"], workload.data_planes)
    ]
    results = requantized(workload, joined(*(joined(*each) for each in sums)), arrays)
    return surrounded(workload, results)


def dense(workload: Workload, arrays: Arrays) -> Array:
    """A matrix product with its epilogue."""
    weights = _planes(arrays["weight"], workload.planes)
    tile = arrays["data"].shape[-2:]
    sums = [
        joined(
            *(wrapped(products(from_blocks(data), weight_from_blocks(each))) for each in weights)
        )
        for data in _planes(arrays["data"], workload.data_planes)
    ]
    return requantized(workload, to_blocks(joined(*sums), *tile), arrays)


def conv2d_transpose(workload: Workload, arrays: Arrays) -> Array:
    """A convolution for every phase of the output's pixels, with one epilogue."""
    data, weight = arrays["data"], arrays["weight"]
    down, across = weight.shape[1:3]
    window = Window(kernel=weight.shape[4:6], pad=window_of(workload, (1, 1)).pad)
    sums = np.zeros(workload.outputs[0].shape, np.int32)
    for p, q in np.ndindex(down, across):
        sums[:, :, p::down, q::across] = _sums(data, weight[:, p, q], window)
    return requantized(workload, sums, arrays)


def matmul(workload: Workload, arrays: Arrays) -> Array:
    """The product of two activations for every entry of a batch."""
    data, weight = (arrays[name].astype(np.float64) for name in ("data", "weight"))
    sums = np.einsum("zkmbi,zknoi->znmbo", data, weight, optimize=True)
    return requantized(workload, wrapped(sums), arrays)


def scaled_add(workload: Workload, arrays: Arrays) -> Array:
    """Two tensors, each multiplied by a tile, added, rounded, shifted and clipped."""
    total = times(arrays["a"], arrays["scale_a"]) + times(arrays["b"], arrays["scale_b"])
    return rounded(workload, total)


def window_max2d(workload: Workload, arrays: Arrays) -> Array:
    """The largest product under the window and at least 0."""
    products = from_blocks(times(arrays["x"], arrays["identity"]))
    window = window_of(workload, workload.attr_ints("kernel"))
    best = pooled(padded(products, window), window, np.maximum)
    blocks = to_blocks(np.maximum(best, 0), *arrays["x"].shape[-2:])
    return np.asarray(blocks, np.int8)


def window_sum2d(workload: Workload, arrays: Arrays) -> Array:
    """The sum of the products under the window, rounded, shifted and clipped."""
    window = window_of(workload, workload.attr_ints("kernel"))
    image = from_blocks(arrays["x"])
    sums = pooled(padded(image, window).astype(np.int64), window, np.add)
    blocks = to_blocks(sums, *arrays["x"].shape[-2:])
    return rounded(workload, times(blocks, arrays["scale"]))


def times(x: Array, tile: Array) -> Array:
    """int64 x·tile: (x·tile)[o] = sum over i of x[i] * tile[o, i], over the lanes of `x`."""
    products = x.astype(np.float64) @ tile.astype(np.float64).T
    return np.asarray(products, np.int64)


def joined(*planes: Array) -> Array:
    """int32 sums of all planes, the one that is worth most first."""
    total, *others = planes
    for each in others:
        total = total * np.int32(PLANE) + each
    return total


def rounded(workload: Workload, total: Array) -> Array:
    """int8(clip((total + round) >> shift, lo, hi))"""
    shift = workload.attr_int("shift")
    return _clipped(workload, wrapped(total + half(shift)) >> shift)


def requantized(workload: Workload, sums: Array, arrays: Arrays) -> Array:
    """int8(clip(((sums + bias) * factor) >> first >> shift, lo, hi)) of int32 sums.

    They are [N/b, C/c, ..., b, c], `first` is the workload's `first_shift`. Results of 16 bits are
    two planes, [N/b, 2, C/c, ...].

    What is absent does nothing.
    """
    if "bias" in arrays:
        sums = sums + _spread(_biases(workload, arrays), sums.ndim)
    if "factor" in arrays:
        sums = sums * _spread(arrays["factor"], sums.ndim)
    sums = sums >> workload.first_shift
    if "shift" in arrays:
        sums = sums >> _spread(arrays["shift"], sums.ndim)
    if workload.out_planes > 1:
        wide = np.clip(sums, workload.attr_int("lo"), workload.attr_int("hi"))
        high = (wide + PLANE // 2) // PLANE
        return np.stack((high, wide - high * PLANE), axis=1).astype(np.int8)
    return _clipped(workload, sums)


def _planes(tiles: Array, count: int) -> Array:
    """[P, N or Co, ...] of blocked data or weights [N or Co, [P], ...]."""
    return np.moveaxis(tiles, 1, 0) if count > 1 else tiles[None]


def _of_groups(data: Array, weight: Array, window: Window) -> Array:
    """int32 sums of a convolution, in groups of blocks or not."""
    groups = data.shape[1] // weight.shape[1]
    parts = zip(np.split(data, groups, axis=1), np.split(weight, groups, axis=0), strict=True)
    return np.concatenate([_sums(part, tiles, window) for part, tiles in parts], axis=1)


def _sums(data: Array, weight: Array, window: Window) -> Array:
    """int32 sums of a convolution of blocked data with tiles [Co, Ci, Kh, Kw, c, c]."""
    total = correlate(from_blocks(data), exact(weight_from_blocks(weight)), window)
    return to_blocks(wrapped(total), *data.shape[-2:])


def _biases(workload: Workload, arrays: Arrays) -> Array:
    """int32 [Co/c or 1, b, c]: what the rows of `unit` make of the tiles of biases."""
    unit, tiles = arrays["unit"].astype(np.int32), arrays["bias"].astype(np.int32)
    by_plane = tiles.reshape(-1, 2 if workload.is_in_planes else 1, *tiles.shape[-3:])
    made = np.asarray(np.einsum("bi,kptoi->pkbo", unit, by_plane), np.int32)
    return joined(*made)


def _spread(lanes: Array, rank: int) -> Array:
    """[Co/c, b, c], [Co/c] or [1] so that it goes with [N/b, Co/c, ..., b, c]."""
    groups = lanes.shape[0]
    tile = lanes.shape[1:] or (1, 1)
    return lanes.reshape(1, groups, *(1,) * (rank - 4), *tile)


def _clipped(workload: Workload, acc: Array) -> Array:
    return narrowed(acc, workload.attr_int("lo"), workload.attr_int("hi"))


ACCELERATED_KERNELS: Final[Mapping[str, Callable[[Workload, Arrays], Array]]] = {
    "conv2d": conv2d,
    "dense": dense,
    "conv2d_transpose": conv2d_transpose,
    "matmul": matmul,
    "scaled_add": scaled_add,
    "window_max2d": window_max2d,
    "window_sum2d": window_sum2d,
}
