"""Right answers of ONNX's quantized operators, on the processor's tensors.

Sums are exact and wrap as int32 does; `qlinear_arithmetic` says what becomes of them, and
`tilefarm.workload.OPERATORS` what each operator means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.real_arrays import combined
from tilefarm.workload import Workload

from driver.network.graph.columns import (
    correlate_groups,
    correlate_phases,
    multiplied,
    padded,
    pooled,
)
from driver.network.graph.grid import Grid, own_grid
from driver.network.graph.ir import Window
from driver.network.integer.arithmetic import exact, wrapped
from driver.network.integer.blocks import from_blocks, to_blocks
from driver.network.integer.qlinear import Requantization
from driver.network.integer.qlinear_arithmetic import (
    dynamically_quantized,
    quantized,
    requantized,
)
from driver.network.integer.winograd import taps_of
from driver.network.integer.workload_window import window_of

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = Mapping[str, Array]

_NO_PAD: Final = (0, 0, 0, 0)
_WITH_PLANES: Final = 6
"""Axes of weights of a depthwise layer in planes."""
_LARGEST: Final = 255
"""Magnitude of data of 8 bits."""


def qlinear_conv2d(workload: Workload, arrays: Arrays) -> Array:
    """A convolution of blocks of channels, or of an image with its channels along the rows."""
    weight = arrays["weight"]
    if "weight_zero" in arrays:
        weight = weight.astype(np.int16) - arrays["weight_zero"]
    if arrays["data"].shape[-1] == 1:
        co, ci, rows, groups, _, lanes, together = weight.shape
        taps = weight.transpose(0, 5, 1, 2, 3, 4, 6)
        taps = taps.reshape(co * lanes, ci, rows, groups * together)
    else:
        co, ci, rows, columns, groups, lanes, together = weight.shape
        taps = weight.transpose(0, 5, 1, 4, 6, 2, 3)
        taps = taps.reshape(co * lanes, ci, groups * together, rows, columns)
        absent = arrays["data"].shape[-1] - groups * together
        taps = np.pad(taps, ((0, 0), (0, 0), (0, absent), (0, 0), (0, 0)))
        taps = taps.reshape(co * lanes, -1, rows, columns)
    in_groups = workload.attr_int("groups") if "groups" in dict(workload.attrs) else 1
    return _convolved(workload, arrays, taps, in_groups)


def qlinear_winograd2d(workload: Workload, arrays: Arrays) -> Array:
    """The convolution whose taps gave the weights [Co/l, 6, Ci/c, Kh, c/2, l, 2]."""
    taps = np.moveaxis(taps_of(np.moveaxis(arrays["weight"], 1, -1)), -1, 3)
    return qlinear_conv2d(workload, {**arrays, "weight": taps})


def qlinear_depthwise2d(workload: Workload, arrays: Arrays) -> Array:
    """A convolution of every channel with taps of its own."""
    weight = arrays["weight"]
    if weight.ndim == _WITH_PLANES:
        weight = weight.sum(axis=3, dtype=np.int16)
    blocks, rows, parts, lanes, together = weight.shape
    taps = weight.transpose(0, 3, 1, 2, 4)
    taps = taps.reshape(blocks * lanes, 1, rows, parts * together)
    return _convolved(workload, arrays, taps, groups=blocks * lanes)


def qlinear_conv2d_transpose(workload: Workload, arrays: Arrays) -> Array:
    """A convolution for each phase of the output's pixels."""
    co, down, across, ci, rows, columns, groups, lanes, together = arrays["weight"].shape
    taps = arrays["weight"].transpose(0, 7, 1, 2, 3, 6, 8, 4, 5)
    taps = taps.reshape(co * lanes, down, across, ci * groups * together, rows, columns)
    window = Window(kernel=(rows, columns), pad=window_of(workload, (rows, columns)).pad)
    image = padded(from_blocks(arrays["data"]), window, workload.attr_int("fill"))
    sums = wrapped(correlate_phases(image, exact(taps, _LARGEST), _NO_PAD))
    return _by_channel(workload, sums, arrays)


def qlinear_matmul(workload: Workload, arrays: Arrays) -> Array:
    """Products of the integers less their zero points, a [Z, K, I] and b [Z, K, J]."""
    a, b = (
        arrays[name].astype(np.float64) - workload.attr_int(f"{name}_zero") for name in ("a", "b")
    )
    sums = wrapped(multiplied(a, b, groups=1))  # no sum of that many products leaves 2^53
    scale = np.full(1, workload.attr_float("scale"), np.float32)
    return requantized(sums, scale, _result(workload))


def qlinear_avg_pool2d(workload: Workload, arrays: Arrays) -> Array:
    """Scaled sums under a window."""
    window = window_of(workload, workload.attr_ints("kernel"))
    steps = from_blocks(arrays["x"]).astype(np.int32) - workload.attr_int("x_zero")
    sums = pooled(padded(steps, window), window, np.add)
    means = requantized(sums, arrays["scale"], _result(workload))
    return to_blocks(means, *workload.outputs[0].shape[-2:])


def qlinear_zip(workload: Workload, arrays: Arrays) -> Array:
    """A function of the reals of two tensors, quantized."""
    both = _combined(workload, arrays["a"], arrays["b"])
    ends = workload.attr_int("lo"), workload.attr_int("hi")
    return np.clip(quantized(both, _grid(workload, "", workload.outputs[0].dtype)), *ends)


def quantize_linear(workload: Workload, arrays: Arrays) -> Array:
    """Blocks of 8 bits of a plain float32 tensor."""
    (out,) = workload.outputs
    return to_blocks(quantized(arrays["x"], _grid(workload, "", out.dtype)), *out.shape[-2:])


def dequantize_linear(workload: Workload, arrays: Arrays) -> Array:
    """Plain float32 of blocks of 8 bits."""
    kept = from_blocks(arrays["x"], workload.outputs[0].shape)
    return _grid(workload, "", workload.inputs[0].dtype).reals(kept)


def dynamic_grid(workload: Workload, arrays: Arrays) -> Array:
    """Scale and zero point of every row."""
    del workload
    return own_grid(arrays["x"])


def dynamic_quantize_linear(workload: Workload, arrays: Arrays) -> Array:
    """Blocks of uint8 of a plain float32 tensor, on a grid for each sample."""
    pad = workload.attr_ints("pad") if "pad" in dict(workload.attrs) else ()
    steps = dynamically_quantized(arrays["x"], arrays["grid"], pad)
    return to_blocks(steps, *workload.outputs[0].shape[-2:])


def dynamic_bias(workload: Workload, arrays: Arrays) -> Array:
    """Biases less the zero point's share of the sums."""
    del workload
    zero = np.int64(arrays["grid"][0, 1])
    return wrapped(arrays["bias"] - zero * arrays["taps"].astype(np.int64))


def _convolved(workload: Workload, arrays: Arrays, taps: Array, groups: int) -> Array:
    """The output for weights [Co, Ci / groups, Kh, Kw]; taps beyond the kernel are zero."""
    window = window_of(workload, taps.shape[2:])
    image = padded(from_blocks(arrays["data"]), window, workload.attr_int("fill"))
    inside = replace(window, pad=_NO_PAD)
    sums = wrapped(correlate_groups(image, exact(taps, _LARGEST), inside, groups))
    return _by_channel(workload, sums, arrays)


def _by_channel(workload: Workload, sums: Array, arrays: Arrays) -> Array:
    """The blocked output of sums [N, C, H, W] without their bias."""
    (out,) = workload.outputs
    bias, scale = (arrays[name].reshape(-1, 1, 1) for name in ("bias", "scale"))
    addend = arrays["addend"].reshape(-1) if "addend" in arrays else None
    steps = requantized(sums + bias, scale, replace(_result(workload), addend=addend))
    if "other" in arrays:
        steps = steps.astype(np.int32)  # on a grid of its own, which the output's type may not hold
        both = _combined(workload, steps, from_blocks(arrays["other"]))
        ends = workload.attr_int("to_lo"), workload.attr_int("to_hi")
        steps = np.clip(quantized(both, _grid(workload, "to_", out.dtype)), *ends)
    return to_blocks(steps, *out.shape[-2:])


def _result(workload: Workload) -> Requantization:
    """What becomes of sums; the scale is with whoever has it."""
    (out,) = workload.outputs
    nothing = np.ones(1, np.float32)
    if out.dtype.is_float:
        return Requantization(scale=nothing)
    zero, low, high = (workload.attr_int(name) for name in ("zero", "lo", "hi"))
    held = DType.INT32 if workload.tensor("other") is not None else out.dtype
    return Requantization(scale=nothing, dtype=held, zero=zero, lo=low, hi=high)


def _combined(workload: Workload, a: Array, b: Array) -> Array:
    """The workload's function of what integers `a` and `b` stand for."""
    reals = (
        _grid(workload, f"{name}_", DType.INT32).reals(each) for name, each in (("a", a), ("b", b))
    )
    return combined(workload.attr_str("function"), *reals)


def _grid(workload: Workload, name: str, dtype: DType) -> Grid:
    """The grid of the attributes `<name>scale` and `<name>zero`."""
    return Grid(workload.attr_float(f"{name}scale"), workload.attr_int(f"{name}zero"), dtype.value)


QLINEAR_KERNELS: Final[Mapping[str, Callable[[Workload, Arrays], Array]]] = {
    "qlinear_conv2d": qlinear_conv2d,
    "qlinear_depthwise2d": qlinear_depthwise2d,
    "qlinear_conv2d_transpose": qlinear_conv2d_transpose,
    "qlinear_matmul": qlinear_matmul,
    "qlinear_avg_pool2d": qlinear_avg_pool2d,
    "qlinear_zip": qlinear_zip,
    "quantize_linear": quantize_linear,
    "dequantize_linear": dequantize_linear,
    "dynamic_grid": dynamic_grid,
    "dynamic_quantize_linear": dynamic_quantize_linear,
    "dynamic_bias": dynamic_bias,
    "qlinear_winograd2d": qlinear_winograd2d,
}
