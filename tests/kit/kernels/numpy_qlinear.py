"""What QLinear operators mean, in numpy on logical tensors: slow, obvious, not derived from IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tilefarm.workload import Workload

Array = npt.NDArray[Any]


def _conv2d(
    work: Workload, data: Array, weight: Array, weight_zero: Array | None = None, **rest: Array
) -> Array:
    if weight_zero is not None:
        weight = weight.astype(np.int64) - weight_zero
    if data.shape[-1] == 1:
        weight = np.moveaxis(weight, -1, -3).reshape(*weight.shape[:3], -1, 1, weight.shape[-2], 1)
    groups = dict(work.attrs).get("groups", 1)
    assert isinstance(groups, int)
    parts = zip(np.split(data, groups, axis=1), np.split(weight, groups), strict=True)
    sums = [_convolved(work, blocks, _taps(tiles)) for blocks, tiles in parts]
    return _requantized(work, np.concatenate(sums, axis=-1), **rest)


def _taps(weight: Array) -> Array:
    """[Co, Kh, Kw, Ci] of [Co/l, Ci/c, Kh, Kw, c/4, l, 4]."""
    taps = weight.transpose(0, 5, 2, 3, 1, 4, 6)
    return taps.reshape(-1, *taps.shape[2:4], taps[0, 0, 0, 0].size).astype(np.int64)


def _convolved(work: Workload, data: Array, taps: Array) -> Array:
    """int64 sums [N, OH, OW, Co]."""
    n, _, height, width, _, _ = work.outputs[0].shape
    out = np.zeros((n, height, width, len(taps)), np.int64)
    for h, w in np.ndindex(height, width):
        seen = _window(work, data, taps.shape[1:3], h, w)[..., : taps.shape[3]]
        out[:, h, w] = np.einsum("nyxi,oyxi->no", seen, taps)
    return out


def _transposed(work: Workload, data: Array, weight: Array, **rest: Array) -> Array:
    down, across = weight.shape[1:3]
    assert work.attr_ints("stride") == (down, across)
    (out,) = work.outputs
    n, co, height, width, *lanes = out.shape
    phase = replace(
        work,
        outputs=(replace(out, shape=(n, co, height // down, width // across, *lanes)),),
        attrs=tuple((dict(work.attrs) | {"stride": (1, 1), "dilation": (1, 1)}).items()),
    )
    sums = np.zeros((n, height, width, co * lanes[-1]), np.int64)
    for p, q in np.ndindex(down, across):
        sums[:, p::down, q::across] = _convolved(phase, data, _taps(weight[:, p, q]))
    return _requantized(work, sums, **rest)


def _winograd2d(work: Workload, data: Array, weight: Array, **rest: Array) -> Array:
    first, last = weight[:, 0] // 6, weight[:, 5] // 24
    middle = (weight[:, 3] - weight[:, 4]) // 4
    return _conv2d(work, data, np.stack((first, middle, last), axis=3), **rest)


def _depthwise2d(work: Workload, data: Array, weight: Array, **rest: Array) -> Array:
    if weight.ndim == 6:
        weight = weight.astype(np.int64).sum(axis=3)
    taps = weight.transpose(1, 2, 4, 0, 3)
    taps = taps.reshape(len(taps), -1, taps.shape[3] * taps.shape[4]).astype(np.int64)
    out = np.zeros(_plain(work.outputs[0].shape), np.int64)
    for h, w in np.ndindex(*out.shape[1:3]):
        out[:, h, w] = np.einsum("nyxi,yxi->ni", _window(work, data, taps.shape[:2], h, w), taps)
    return _requantized(work, out, **rest)


def _matmul(work: Workload, a: Array, b: Array) -> Array:
    left = a.astype(np.int64) - work.attr_int("a_zero")
    right = b.astype(np.int64) - work.attr_int("b_zero")
    sums = np.einsum("zki,zkj->zij", left, right).astype(np.int32)
    real = sums.astype(np.float32) * np.float32(work.attr_float("scale"))
    return real if work.outputs[0].dtype.is_float else _narrowed(work, real)


def _avg_pool2d(work: Workload, x: Array, scale: Array) -> Array:
    (kh, kw), (down, across) = work.attr_ints("kernel"), work.attr_ints("stride")
    top, left, bottom, right = work.attr_ints("pad")
    zero, (out,) = work.attr_int("x_zero"), work.outputs
    around = ((0, 0), (0, 0), (top, bottom), (left, right), (0, 0), (0, 0))
    image = np.pad(x.astype(np.int64) - zero, around)
    real = np.zeros(out.shape, np.float32)
    for h, w in np.ndindex(*out.shape[2:4]):
        rows, columns = slice(h * down, h * down + kh), slice(w * across, w * across + kw)
        sums = image[:, :, rows, columns].sum(axis=(2, 3)).astype(np.float32)
        real[:, :, h, w] = sums * scale[h, w]
    return real if out.dtype.is_float else _narrowed(work, real)


_FUNCTIONS: Final = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def _zip(work: Workload, a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        both = _both(work, a, b) / np.float32(work.attr_float("scale"))
    return _narrowed(work, both)


def _both(work: Workload, a: Array, b: Array) -> Array:
    """The function of the reals of both."""
    left, right = (
        (each.astype(np.int32) - work.attr_int(f"{name}_zero")).astype(np.float32)
        * np.float32(work.attr_float(f"{name}_scale"))
        for name, each in (("a", a), ("b", b))
    )
    return np.asarray(_FUNCTIONS[work.attr_str("function")](left, right))


def _quantize(work: Workload, x: Array) -> Array:
    (out,) = work.outputs
    ends = np.iinfo(out.dtype.value)
    steps = np.rint(x / np.float32(work.attr_float("scale"))).astype(np.float64)
    bytes_ = np.clip(steps + work.attr_int("zero"), ends.min, ends.max)
    rows, channels, *space = x.shape
    _, blocks, *_, lanes = out.shape
    whole = np.zeros((rows, blocks * lanes, *space), out.dtype.value)
    whole[:, :channels] = bytes_
    split = whole.reshape(rows, blocks, lanes, *space)
    return np.ascontiguousarray(np.moveaxis(split, 2, -1)).reshape(out.shape)


def _dequantize(work: Workload, x: Array) -> Array:
    (out,) = work.outputs
    rows, blocks, *space, _, lanes = x.shape
    whole = np.moveaxis(x.reshape(rows, blocks, *space, lanes), -1, 2)
    whole = whole.reshape(rows, blocks * lanes, *space)[:, : out.shape[1]]
    centered = whole.astype(np.int32) - work.attr_int("zero")
    return centered.astype(np.float32) * np.float32(work.attr_float("scale"))


def _own_grid(work: Workload, x: Array) -> Array:
    del work
    grids = []
    for row in x:
        low, high = min(0, *row), max(0, *row)
        scale = np.float32(np.float32(high) - np.float32(low)) / np.float32(255) or np.float32(1)
        grids.append((scale, np.rint(-np.float32(low) / scale)))
    return np.array(grids, np.float32)


def _dynamic(work: Workload, x: Array, grid: Array) -> Array:
    (out,) = work.outputs
    top, left, bottom, right = work.attr_ints("pad") if work.attrs else (0, 0, 0, 0)
    space = ((top, bottom), (left, right)) if x.ndim == 4 else ((0, 0),) * (x.ndim - 2)
    whole = np.zeros((len(x), out.shape[1] * out.shape[-1], *out.shape[2:-2]), np.uint8)
    for image, (scale, zero), result in zip(x, grid, whole, strict=True):
        steps = np.clip(np.rint(image / scale) + zero, 0, 255)
        result[: len(image)] = np.pad(steps, ((0, 0), *space), constant_values=zero)
    split = whole.reshape(len(x), out.shape[1], out.shape[-1], *out.shape[2:-2])
    return np.ascontiguousarray(np.moveaxis(split, 2, -1)).reshape(out.shape)


def _dynamic_bias(work: Workload, grid: Array, taps: Array, bias: Array) -> Array:
    del work
    return bias - np.int32(grid[0, 1]) * taps


def _plain(blocked: tuple[int, ...]) -> tuple[int, ...]:
    """[N, H, W, C] of [N, C/c, H, W, 1, c]."""
    n, blocks, height, width, _, lanes = blocked
    return n, height, width, blocks * lanes


def _window(work: Workload, data: Array, kernel: tuple[int, ...], row: int, column: int) -> Array:
    """[N, kh, kw, C]: what one output sees."""
    top, left, bottom, right = work.attr_ints("pad")
    (down, across), (below, beside) = work.attr_ints("stride"), work.attr_ints("dilation")
    around = ((0, 0), (top, bottom), (left, right), (0, 0))
    image = data[..., 0, :].transpose(0, 2, 3, 1, 4).reshape(_plain(data.shape)).astype(np.int64)
    image = np.pad(image, around, constant_values=work.attr_int("fill"))
    rows = [row * down + tap * below for tap in range(kernel[0])]
    columns = [column * across + tap * beside for tap in range(kernel[1])]
    return image[:, rows][:, :, columns]


def _requantized(
    work: Workload,
    sums: Array,
    bias: Array,
    scale: Array,
    addend: Array | None = None,
    other: Array | None = None,
) -> Array:
    """Sums [N, H, W, C] as the output, in its blocks."""
    real = (sums + bias.reshape(-1)).astype(np.int32).astype(np.float32) * scale.reshape(-1)
    if addend is not None:
        real = real + addend.reshape(-1)
    n, blocks, height, width, batch, lanes = work.outputs[0].shape
    found = real.reshape(n, height, width, blocks, batch, lanes).transpose(0, 3, 1, 2, 4, 5)
    if work.outputs[0].dtype.is_float:
        return np.ascontiguousarray(found)
    if other is None:
        return _narrowed(work, found)
    with np.errstate(all="ignore"):
        both = _both(work, _within(work, found, ""), other) / np.float32(
            work.attr_float("to_scale")
        )
    return _within(work, both, "to_").astype(work.outputs[0].dtype.value)


def _narrowed(work: Workload, real: Array) -> Array:
    return _within(work, real, "").astype(work.outputs[0].dtype.value)


def _within(work: Workload, real: Array, end: str) -> Array:
    """The nearest integers plus zero, within the ends; the lower one for what is no number."""
    low, high = work.attr_int(f"{end}lo"), work.attr_int(f"{end}hi")
    with np.errstate(invalid="ignore"):
        whole = np.rint(real) + np.float64(work.attr_int(f"{end}zero"))
    return np.ascontiguousarray(np.clip(np.where(np.isnan(whole), low, whole), low, high))


OPERATORS: Final[Mapping[str, Callable[..., Array]]] = {
    "qlinear_conv2d": _conv2d,
    "qlinear_depthwise2d": _depthwise2d,
    "qlinear_conv2d_transpose": _transposed,
    "qlinear_matmul": _matmul,
    "qlinear_avg_pool2d": _avg_pool2d,
    "qlinear_zip": _zip,
    "quantize_linear": _quantize,
    "dequantize_linear": _dequantize,
    "dynamic_grid": _own_grid,
    "dynamic_quantize_linear": _dynamic,
    "dynamic_bias": _dynamic_bias,
    "qlinear_winograd2d": _winograd2d,
}
