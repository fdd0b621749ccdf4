"""Convolution and pooling windows: auto_pad, ceil_mode and what a border window counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driver.network.frontend.call import Lowered, OnnxCall, RefusedError, Scope
from driver.network.graph.columns import padded, patches
from driver.network.graph.ir import AvgPool2d, Conv2d, FloatArray, MaxPool2d, Shape, Window

_CHANNEL_MAJOR_RANK = 4
_LARGEST = 4096
"""More than any window has; keeps broken files from asking for all memory."""


def conv(call: OnnxCall, scope: Scope) -> Lowered:
    """Conv of any group with constant weights."""
    name = scope.activation(call)
    shape = image(scope.shapes[name])
    weight, group = kernels(call, scope)
    if weight.shape[1] * group != shape[1] or weight.shape[0] % group:
        raise RefusedError(
            f"weight {list(weight.shape)} of group {group} does not fit input {list(shape)}"
        )
    bias = channel_bias(call, scope, weight.shape[0])
    window = window_of(call, shape, pair(weight.shape[2:], "kernel"))
    return Lowered((Conv2d(weight=weight, bias=bias, window=window, groups=group),), (name,))


def kernels(call: OnnxCall, scope: Scope) -> tuple[FloatArray, int]:
    """The constant weight of a 2-D convolution and its group."""
    weight = scope.weights(call, 1, "weight")
    group = call.integer("group", 1)
    if weight.ndim != _CHANNEL_MAJOR_RANK or not weight.size:
        raise RefusedError(f"weight {list(weight.shape)}; only 2-D convolution is supported")
    if group < 1:
        raise RefusedError(f"group {group}; at least 1 is needed")
    declared = call.integers("kernel_shape")
    if declared is not None and declared != weight.shape[2:]:
        raise RefusedError(
            f"kernel_shape {list(declared)} is not that of weight {list(weight.shape)}"
        )
    return weight, group


def channel_bias(call: OnnxCall, scope: Scope, channels: int) -> FloatArray:
    """The third input, one value for each output channel; zeros where it is absent."""
    if not call.has_input(2):
        return np.zeros(channels, np.float32)
    bias = scope.weights(call, 2, "bias")
    if bias.shape != (channels,):
        raise RefusedError(f"bias {list(bias.shape)} does not fit {channels} output channels")
    return bias


def max_pool(call: OnnxCall, scope: Scope) -> Lowered:
    """MaxPool without dilation or indices."""
    name = scope.activation(call)
    window = _pool_window(call, image(scope.shapes[name]))
    return Lowered((MaxPool2d(window=_with_ceil(call, window, scope.shapes[name])),), (name,))


def average_pool(call: OnnxCall, scope: Scope) -> Lowered:
    """AveragePool; the divisor of a border window follows count_include_pad."""
    name = scope.activation(call)
    shape = image(scope.shapes[name])
    declared = _pool_window(call, shape)
    window = _with_ceil(call, declared, shape)
    divisor = _divisors(shape, declared, window, bool(call.integer("count_include_pad", 0)))
    return Lowered((AvgPool2d(window=window, divisor=divisor),), (name,))


def global_average_pool(call: OnnxCall, scope: Scope) -> Lowered:
    """GlobalAveragePool over height and width."""
    name = scope.activation(call)
    return Lowered((_global_mean(image(scope.shapes[name])),), (name,))


def global_max_pool(call: OnnxCall, scope: Scope) -> Lowered:
    """GlobalMaxPool over height and width."""
    name = scope.activation(call)
    _, _, height, width = image(scope.shapes[name])
    return Lowered((MaxPool2d(window=Window(kernel=(height, width))),), (name,))


def window_of(call: OnnxCall, shape: Shape, kernel: tuple[int, int]) -> Window:
    """The window that the attributes describe on an input [N, C, H, W].

    Raises:
        RefusedError: an attribute is not for two axes, negative, or contradicts another.
    """
    stride = pair(call.integers("strides") or (1, 1), "strides")
    dilation = pair(call.integers("dilations") or (1, 1), "dilations")
    if not 1 <= min(kernel + stride + dilation) <= max(kernel + stride + dilation) <= _LARGEST:
        raise RefusedError(f"kernel, strides and dilations must be within 1 to {_LARGEST}")
    pads = call.integers("pads") or (0, 0, 0, 0)
    if len(pads) != 4 or not 0 <= min(pads) <= max(pads) <= _LARGEST:
        raise RefusedError(f"pads {list(pads)}; four within 0 to {_LARGEST} are supported")
    window = Window(
        kernel=kernel, stride=stride, pad=(pads[0], pads[1], pads[2], pads[3]), dilation=dilation
    )
    auto = call.text("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        return _same_padded(window, shape, upper=auto == "SAME_UPPER")
    if auto == "VALID":
        return replace(window, pad=(0, 0, 0, 0))
    if auto not in ("", "NOTSET"):
        raise RefusedError(f"auto_pad {auto!r} is unknown")
    return window


def _same_padded(window: Window, shape: Shape, *, upper: bool) -> Window:
    """Padding that makes the output ceil(input / stride); an odd one goes below or above."""
    before, after = [], []
    for extent, kernel, stride, dilation in zip(
        shape[2:], window.kernel, window.stride, window.dilation, strict=True
    ):
        reach = dilation * (kernel - 1) + 1
        total = max(0, (-(-extent // stride) - 1) * stride + reach - extent)
        small, large = total // 2, total - total // 2
        before.append(small if upper else large)
        after.append(large if upper else small)
    return replace(window, pad=(before[0], before[1], after[0], after[1]))


def _pool_window(call: OnnxCall, shape: Shape) -> Window:
    kernel = call.integers("kernel_shape")
    if kernel is None:
        raise RefusedError("kernel_shape is missing")
    window = window_of(call, shape, pair(kernel, "kernel_shape"))
    if window.dilation != (1, 1):
        raise RefusedError(f"dilations {list(window.dilation)}; pooling has none here")
    if max(window.pad[0::2]) >= window.kernel[0] or max(window.pad[1::2]) >= window.kernel[1]:
        raise RefusedError(f"pads {list(window.pad)} are as large as the window")
    return window


def _with_ceil(call: OnnxCall, window: Window, shape: Shape) -> Window:
    """The window with the padding below and right that ceil_mode asks for."""
    if not call.integer("ceil_mode", 0):
        return window
    extra = []
    for axis in (0, 1):
        before, after = window.pad[axis], window.pad[axis + 2]
        room = shape[2 + axis] + before + after - window.kernel[axis]
        places = -(-room // window.stride[axis]) + 1
        if (places - 1) * window.stride[axis] >= shape[2 + axis] + before:
            places -= 1  # a window that would start in the padding is dropped
        extra.append(max(0, (places - 1) * window.stride[axis] - room))
    top, left, bottom, right = window.pad
    return replace(window, pad=(top, left, bottom + extra[0], right + extra[1]))


def _divisors(shape: Shape, declared: Window, window: Window, count_pad: bool) -> FloatArray:
    """How many elements each place of the window counts; what ceil_mode adds never counts."""
    counted = np.ones((1, 1, *shape[2:]), np.float32)
    if count_pad:
        counted = np.pad(
            counted,
            ((0, 0), (0, 0), declared.pad[0::2], declared.pad[1::2]),
            constant_values=1,
        )
        beyond = tuple(w - d for w, d in zip(window.pad, declared.pad, strict=True))
        window = replace(window, pad=(beyond[0], beyond[1], beyond[2], beyond[3]))
    ones = patches(padded(counted, window), window)
    return np.asarray(ones.sum(axis=(4, 5))[0, 0], np.float32)


def _global_mean(shape: Shape) -> AvgPool2d:
    _, _, height, width = shape
    divisor = np.full((1, 1), height * width, np.float32)
    return AvgPool2d(window=Window(kernel=(height, width)), divisor=divisor)


def image(shape: Shape) -> Shape:
    """The shape, if it is [N, C, H, W]."""
    if len(shape) != _CHANNEL_MAJOR_RANK:
        raise RefusedError(f"input {list(shape)}; only [N, C, H, W] is supported")
    return shape


def pair(values: tuple[int, ...], what: str) -> tuple[int, int]:
    """The values for height and width."""
    if len(values) != 2:
        raise RefusedError(f"{what} {list(values)}; only two axes are supported")
    return values[0], values[1]
