"""What every operator means, in numpy on logical tensors: slow, obvious, not derived from IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tilefarm.workload import Workload

Array = npt.NDArray[Any]


def plain(blocked: Array) -> Array:
    """[N/b, C/c, ..., b, c] as [N, C, ...]."""
    rank = blocked.ndim
    moved = blocked.transpose(0, rank - 2, 1, rank - 1, *range(2, rank - 2))
    n, b, c, o, *space = moved.shape
    return moved.reshape(n * b, c * o, *space)


def blocked(logical: Array, shape: tuple[int, ...]) -> Array:
    """[N, C, ...] in the blocked `shape`, missing elements zero."""
    n, c, *space, b, o = shape
    room = np.zeros((n * b, c * o, *space), logical.dtype)
    room[tuple(slice(extent) for extent in logical.shape)] = logical
    split = room.reshape(n, b, c, o, *space)
    return split.transpose(0, 2, *range(4, split.ndim), 1, 3)


def run(work: Workload, arrays: Mapping[str, Array]) -> Array:
    """The output of a workload."""
    return OPERATORS[work.operator](work, *(arrays[spec.name] for spec in work.inputs))


def _clipped(work: Workload, wide: Array) -> Array:
    return np.clip(wide, work.attr_int("lo"), work.attr_int("hi")).astype(np.int8)


def _rounded(work: Workload, wide: Array) -> Array:
    shift = work.attr_int("shift")
    return (wide + ((1 << shift) >> 1)) >> shift


def _windows(work: Workload, image: Array, kernel: tuple[int, ...], fill: int) -> Array:
    """[N, C, OH, OW, kh, kw] of an image [N, C, H, W]."""
    top, left, bottom, right = work.attr_ints("pad")
    step_h, step_w = work.attr_ints("stride")
    around = ((0, 0), (0, 0), (top, bottom), (left, right))
    padded = np.pad(image.astype(np.int64), around, constant_values=fill)
    views = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(2, 3))
    return views[:, :, ::step_h, ::step_w]


def _requantized(work: Workload, wide: Array, bias: Array, shift: Array) -> Array:
    column = (-1, *(1,) * (wide.ndim - 2))
    moved = (wide + bias.reshape(column)) >> shift.reshape(column)
    return blocked(_clipped(work, moved), work.outputs[0].shape)


def _conv2d(work: Workload, data: Array, weight: Array, bias: Array, shift: Array) -> Array:
    co, ci, kh, kw, o, i = weight.shape
    dilation_h, dilation_w = work.attr_ints("dilation")
    reach = (dilation_h * (kh - 1) + 1, dilation_w * (kw - 1) + 1)
    seen = _windows(work, plain(data), reach, 0)[..., ::dilation_h, ::dilation_w]
    filters = weight.transpose(0, 4, 1, 5, 2, 3).reshape(co * o, ci * i, kh, kw)
    wide = np.einsum("nchwyx,kcyx->nkhw", seen, filters.astype(np.int64))
    return _requantized(work, wide, bias, shift)


def _dense(work: Workload, data: Array, weight: Array, bias: Array, shift: Array) -> Array:
    co, ci, o, i = weight.shape
    matrix = weight.transpose(0, 2, 1, 3).reshape(co * o, ci * i).astype(np.int64)
    return _requantized(work, plain(data).astype(np.int64) @ matrix.T, bias, shift)


def _quantize(work: Workload, x: Array) -> Array:
    scaled = x * np.float32(work.attr_float("inv_scale"))
    return blocked(np.clip(np.round(scaled), -128, 127).astype(np.int8), work.outputs[0].shape)


def _dequantize(work: Workload, x: Array) -> Array:
    kept = plain(x)[tuple(slice(extent) for extent in work.outputs[0].shape)]
    return kept.astype(np.float32) * np.float32(work.attr_float("scale"))


def _add(work: Workload, a: Array, b: Array) -> Array:
    wide = a.astype(np.int64) * work.attr_int("mul_a") + b.astype(np.int64) * work.attr_int("mul_b")
    return _clipped(work, _rounded(work, wide))


def _affine(work: Workload, x: Array, mul: Array, add: Array, shift: Array) -> Array:
    spread = (1, mul.shape[0], *(1,) * (x.ndim - 4), *mul.shape[1:])
    wide = x.astype(np.int64) * mul.reshape(spread) + add.reshape(spread)
    return _clipped(work, wide >> shift.reshape(spread))


def _max_pool2d(work: Workload, x: Array) -> Array:
    kernel = work.attr_ints("kernel")
    best = _windows(work, plain(x), kernel, -128).max(axis=(4, 5))
    return blocked(best.astype(np.int8), work.outputs[0].shape)


def _avg_pool2d(work: Workload, x: Array, mul: Array) -> Array:
    sums = _windows(work, plain(x), work.attr_ints("kernel"), 0).sum(axis=(4, 5))
    return blocked(_clipped(work, _rounded(work, sums * mul)), work.outputs[0].shape)


def _relayout(work: Workload, x: Array) -> Array:
    before, after = work.attr_ints("logical_in"), work.attr_ints("logical_out")
    kept = plain(x)[tuple(slice(extent) for extent in before)]
    return blocked(kept.reshape(after), work.outputs[0].shape)


def _softmax(work: Workload, x: Array, table: Array) -> Array:
    rows, channels = work.outputs[0].shape
    out = np.zeros((rows, channels), np.float32)
    for row, values in enumerate(plain(x)[:rows, :channels].astype(int)):
        powers = [table[max(values) - value] for value in values]
        total = np.float32(0)
        for power in powers:
            total = np.float32(total + power)
        out[row] = [power / total for power in powers]
    return out


OPERATORS: Final[Mapping[str, Callable[..., Array]]] = {
    "conv2d": _conv2d,
    "dense": _dense,
    "quantize": _quantize,
    "dequantize": _dequantize,
    "add": _add,
    "affine": _affine,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "relayout": _relayout,
    "softmax": _softmax,
}
