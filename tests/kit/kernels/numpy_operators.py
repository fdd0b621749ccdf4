"""What every operator means, in numpy on logical tensors: slow, obvious, not derived from IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from kit.kernels import numpy_qlinear, numpy_reals
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
    """The output of a workload, zeros where it writes nothing."""
    inputs = {spec.name: arrays[spec.name] for spec in work.inputs}
    if work.operator == "border" or not any(work.border):
        return OPERATORS[work.operator](work, **inputs)
    top, left, bottom, right = work.border
    out = np.zeros(work.outputs[0].shape, np.int8)
    rows, columns = out.shape[-4] - bottom, out.shape[-3] - right
    within = OPERATORS[work.operator](work.unbordered, **inputs)
    out[..., top:rows, left:columns, :, :] = within
    return out


def _clipped(work: Workload, wide: Array) -> Array:
    return np.clip(wide, work.attr_int("lo"), work.attr_int("hi")).astype(np.int8)


def _rounded(work: Workload, wide: Array) -> Array:
    shift = work.attr_int("shift")
    return (wide + ((1 << shift) >> 1)) >> shift


def _windows(
    work: Workload,
    image: Array,
    kernel: tuple[int, ...],
    fill: float = 0,
    step: tuple[int, ...] | None = None,
) -> Array:
    """[N, C, OH, OW, kh, kw] of an image [N, C, H, W]; `step` is the workload's stride if None."""
    top, left, bottom, right = work.attr_ints("pad")
    step_h, step_w = work.attr_ints("stride") if step is None else step
    around = ((0, 0), (0, 0), (top, bottom), (left, right))
    padded = np.pad(image.astype(np.int64), around, constant_values=fill)
    views = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(2, 3))
    return views[:, :, ::step_h, ::step_w]


def _requantized(work: Workload, wide: Array, **rest: Array) -> Array:
    """The epilogue on int64 sums [N, C, ...]; a value per channel may differ from row to row."""
    wide = wide.astype(np.int32).astype(np.int64)
    rows, channels = wide.shape[:2]
    spread = (rows, channels, *(1,) * (wide.ndim - 2))
    if "bias" in rest:
        wide = wide + _bias(work, rest["bias"], rest["unit"], rows).reshape(spread)
        wide = wide.astype(np.int32).astype(np.int64)
    if "factor" in rest:
        wide = wide * _by_row(rest["factor"], rows, channels).reshape(spread)
        wide = wide.astype(np.int32).astype(np.int64)
    if "shift" in rest:
        wide = wide >> _by_row(rest["shift"], rows, channels).reshape(spread)
    if work.out_planes == 1:
        return blocked(_clipped(work, wide), work.outputs[0].shape)
    v = np.clip(wide, work.attr_int("lo"), work.attr_int("hi"))
    low = (v & 255).astype(np.uint8).view(np.int8)
    n, _, *shape = work.outputs[0].shape
    return np.stack([blocked(each, (n, *shape)) for each in ((v - low) >> 8, low)], axis=1).astype(
        np.int8
    )


def _data(work: Workload, data: Array) -> Array:
    """[N, C, ...] of blocked data, or of two planes of them [N/b, 2, C/c, ...]."""
    if work.data_planes == 1:
        return plain(data)
    return plain(data[:, 0].astype(np.int64) * 256 + data[:, 1])


def _weights(weight: Array, in_planes: bool) -> Array:
    """int64 [C/c, ...] of int8 tiles, or of two planes of them [C/c, 2, ...]."""
    wide = weight.astype(np.int64)
    return wide[:, 0] * 256 + wide[:, 1] if in_planes else wide


def _bias(work: Workload, bias: Array, unit: Array, rows: int) -> Array:
    """[N, C] of tiles [C/c, T, c, c] that rows of `unit` go through."""
    bias = _weights(bias, work.is_in_planes)
    blocks, _, lanes, _ = bias.shape
    per_row = np.zeros((unit.shape[0], blocks * lanes), np.int64)
    for b, co, o in np.ndindex(unit.shape[0], blocks, lanes):
        per_row[b, co * lanes + o] = (bias[co, :, o] @ unit[b]).sum()
    return np.tile(per_row, (rows // unit.shape[0], 1))


def _by_row(values: Array, rows: int, channels: int) -> Array:
    """[N, C] of [C/c, b, c], of one for each block [C/c], or of one for all [1]."""
    if values.ndim == 1:
        return np.broadcast_to(values.repeat(channels // len(values)), (rows, channels))
    per_row = values.transpose(1, 0, 2).reshape(values.shape[1], channels)
    return np.tile(per_row, (rows // values.shape[1], 1))


def _convolved(seen: Array, weight: Array) -> Array:
    """int64 sums [N, Co, OH, OW] of windows [N, Ci, OH, OW, Kh, Kw] and [Co, Ci, Kh, Kw, c, c]."""
    co, ci, kh, kw, o, i = weight.shape
    filters = weight.transpose(0, 4, 1, 5, 2, 3).reshape(co * o, ci * i, kh, kw)
    return np.asarray(np.einsum("nchwyx,kcyx->nkhw", seen, filters.astype(np.int64)))


def _conv2d(work: Workload, data: Array, weight: Array, **rest: Array) -> Array:
    weight = _weights(weight, work.planes > 1)
    (kh, kw), (down, across) = weight.shape[2:4], work.attr_ints("dilation")
    reach = (down * (kh - 1) + 1, across * (kw - 1) + 1)
    seen = _windows(work, _data(work, data), reach)[..., ::down, ::across]
    groups = data.shape[-5] // weight.shape[1]
    assert groups == dict(work.attrs).get("groups", 1)
    parts = zip(np.split(seen, groups, axis=1), np.split(weight, groups), strict=True)
    wide = [_convolved(windows, tiles) for windows, tiles in parts]
    return _requantized(work, np.concatenate(wide, axis=1), **rest)


def _conv2d_transpose(work: Workload, data: Array, weight: Array, **rest: Array) -> Array:
    down, across = weight.shape[1:3]
    assert work.attr_ints("stride") == (down, across)
    seen = _windows(work, plain(data), weight.shape[4:6], step=(1, 1))
    n, co, height, width, b, o = work.outputs[0].shape
    wide = np.zeros((n * b, co * o, height, width), np.int64)
    for p, q in np.ndindex(down, across):
        wide[:, :, p::down, q::across] = _convolved(seen, weight[:, p, q])
    return _requantized(work, wide, **rest)


def _dense(work: Workload, data: Array, weight: Array, **rest: Array) -> Array:
    weight = _weights(weight, work.planes > 1)
    co, ci, o, i = weight.shape
    matrix = weight.transpose(0, 2, 1, 3).reshape(co * o, ci * i)
    return _requantized(work, _data(work, data).astype(np.int64) @ matrix.T, **rest)


def _matmul(work: Workload, data: Array, weight: Array, **rest: Array) -> Array:
    z, k, m, b, i = data.shape
    left = data.transpose(0, 2, 3, 1, 4).reshape(z, m * b, k * i).astype(np.int64)
    _, _, n, o, _ = weight.shape
    right = weight.transpose(0, 2, 3, 1, 4).reshape(z, n * o, k * i).astype(np.int64)
    wide = (left @ right.transpose(0, 2, 1)).reshape(z, m, b, n, o)
    if "bias" in rest:
        products = np.einsum("toi,bi->bo", rest["bias"].astype(np.int64), rest["unit"])
        wide = wide + products[:, None]
    if "shift" in rest:
        wide = wide >> rest["shift"][0]
    return _clipped(work, wide.transpose(0, 3, 1, 2, 4))


def _times(x: Array, tile: Array) -> Array:
    """x·tile over the lanes of blocked `x`."""
    return np.asarray(np.einsum("...i,oi->...o", x.astype(np.int64), tile.astype(np.int64)))


def _scaled_add(work: Workload, a: Array, b: Array, scale_a: Array, scale_b: Array) -> Array:
    return _clipped(work, _rounded(work, _times(a, scale_a) + _times(b, scale_b)))


def _window_max2d(work: Workload, x: Array, identity: Array) -> Array:
    seen = _windows(work, plain(_times(x, identity)), work.attr_ints("kernel"))
    best = np.maximum(seen.max(axis=(4, 5)), 0).astype(np.int8)
    return blocked(best, work.outputs[0].shape)


def _window_sum2d(work: Workload, x: Array, scale: Array) -> Array:
    seen = _windows(work, plain(_times(x, scale)), work.attr_ints("kernel"))
    return blocked(_clipped(work, _rounded(work, seen.sum(axis=(4, 5)))), work.outputs[0].shape)


def _int8(work: Workload, x: Array) -> Array:
    """x·inv_scale + offset in float32, to the nearest int8."""
    scaled = x * np.float32(work.attr_float("inv_scale")) + np.float32(work.offset)
    return np.asarray(np.clip(np.round(scaled), -128, 127).astype(np.int8))


def _quantize(work: Workload, x: Array) -> Array:
    return blocked(_int8(work, x), work.outputs[0].shape)


def _quantize_windows(work: Workload, x: Array) -> Array:
    (kh, kw), (down, across) = work.attr_ints("kernel"), work.attr_ints("dilation")
    reach = (down * (kh - 1) + 1, across * (kw - 1) + 1)
    seen = _windows(work, _int8(work, x), reach, fill=work.fill)[..., ::down, ::across]
    n, c, height, width = seen.shape[:4]
    channels = seen.transpose(0, 4, 5, 1, 2, 3).reshape(n, kh * kw * c, height, width)
    return blocked(channels.astype(np.int8), work.outputs[0].shape)


def _dequantize(work: Workload, x: Array) -> Array:
    kept = plain(x)[tuple(slice(extent) for extent in work.outputs[0].shape)]
    return kept.astype(np.float32) * np.float32(work.attr_float("scale")) + np.float32(work.offset)


def _add(work: Workload, a: Array, b: Array) -> Array:
    wide = a.astype(np.int64) * work.attr_int("mul_a") + b.astype(np.int64) * work.attr_int("mul_b")
    return _clipped(work, _rounded(work, wide))


def _affine(work: Workload, x: Array, mul: Array, add: Array, shift: Array) -> Array:
    spread = (1, mul.shape[0], *(1,) * (x.ndim - 4), *mul.shape[1:])
    wide = x.astype(np.int64) * mul.reshape(spread) + add.reshape(spread)
    return _clipped(work, wide >> shift.reshape(spread))


def _max_pool2d(work: Workload, x: Array) -> Array:
    kernel = work.attr_ints("kernel")
    least = int(np.iinfo(x.dtype).min)
    best = _windows(work, plain(x), kernel, fill=least).max(axis=(4, 5))
    return blocked(best.astype(x.dtype), work.outputs[0].shape)


def _avg_pool2d(work: Workload, x: Array, mul: Array) -> Array:
    sums = _windows(work, plain(x), work.attr_ints("kernel")).sum(axis=(4, 5))
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


def _lookup(work: Workload, x: Array, table: Array) -> Array:
    out = np.empty(x.shape, table.dtype)
    for at in np.ndindex(*x.shape):
        row = table if table.ndim == 1 else table[at[1], at[-1]]
        out[at] = row[int(x[at]) - int(np.iinfo(x.dtype).min)]
    return out


def _product(work: Workload, a: Array, b: Array, table: Array) -> Array:
    factor = np.array([table[int(value) + 128] for value in b.reshape(-1)], np.int64)
    return _clipped(work, _rounded(work, a.astype(np.int64) * factor.reshape(b.shape)))


def _as_strided(work: Workload, x: Array) -> Array:
    out = np.zeros(work.outputs[0].shape, x.dtype)
    strides, offset = work.attr_ints("strides"), work.attr_int("offset")
    for n, *at in np.ndindex(*out.shape):
        steps = sum(each * stride for each, stride in zip(at, strides, strict=True))
        out[(n, *at)] = x[n, offset + steps]
    return out


def _gather(work: Workload, x: Array, index: Array) -> Array:
    out = np.full(work.outputs[0].shape, work.fill, x.dtype)
    for k, place in enumerate(index):
        if 0 <= place < x.shape[1]:
            out[:, k] = x[:, place]
    return out


def _border(work: Workload) -> Array:
    shape = work.outputs[0].shape
    out = np.full(shape, work.attr_int("fill"), np.int8)
    top, left, bottom, right = work.border
    for *outer, row, column, b, c in np.ndindex(*shape):
        if top <= row < shape[-4] - bottom and left <= column < shape[-3] - right:
            out[*outer, row, column, b, c] = 0
    return out


def _concat(work: Workload, **parts: Array) -> Array:
    spec = work.outputs[0]
    rows = [[value for x in parts.values() for value in x[n]] for n in range(spec.shape[0])]
    return np.array(rows, spec.dtype.value)


def _script(work: Workload, x: Array, shift: Array) -> Array:
    """What the one script of the examples says."""
    scale = np.float32(work.attr_float("number_scale"))
    return np.maximum(scale * x + shift, np.float32(0.25))


OPERATORS: Final[Mapping[str, Callable[..., Array]]] = {
    "conv2d": _conv2d,
    "dense": _dense,
    "conv2d_transpose": _conv2d_transpose,
    "matmul": _matmul,
    "scaled_add": _scaled_add,
    "window_max2d": _window_max2d,
    "window_sum2d": _window_sum2d,
    "quantize": _quantize,
    "quantize_windows": _quantize_windows,
    "dequantize": _dequantize,
    "add": _add,
    "affine": _affine,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "relayout": _relayout,
    "softmax": _softmax,
    "lookup": _lookup,
    "product": _product,
    "border": _border,
    "as_strided": _as_strided,
    "gather": _gather,
    "concat": _concat,
    "script": _script,
    **numpy_qlinear.OPERATORS,
    **numpy_reals.OPERATORS,
}
