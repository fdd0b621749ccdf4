"""Workloads of QLinear operators: sizes in pixels and channels, tensors packed as kernels want."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
from tilefarm.dtype import DType
from tilefarm.workload import AttrValue, TensorSpec, Workload

LANES: Final = 16
QUAD: Final = 4

Pair = tuple[int, int]
Pads = tuple[int, int, int, int]


def convolution(
    ci: int = 1,
    co: int = 1,
    size: Pair = (4, 4),
    kernel: Pair = (3, 3),
    stride: Pair = (1, 1),
    pad: Pads = (1, 1, 1, 1),
    dilation: Pair = (1, 1),
    dtype: DType = DType.UINT8,
    together: int = QUAD,
    groups: int = 1,
) -> Workload:
    """A convolution of `ci` to `co` blocks of 16 channels, in groups of blocks."""
    grouped: dict[str, AttrValue] = {"groups": groups} if groups > 1 else {}
    return _qlinear(
        "qlinear_conv2d",
        (1, ci, *size, 1, LANES),
        (co, ci // groups, *kernel, LANES // together, LANES, together),
        (co, *_outside(size, kernel, stride, pad, dilation)),
        {"stride": stride, "pad": pad, "dilation": dilation, **grouped},
        dtype,
    )


def winograd(
    ci: int = 1,
    co: int = 1,
    size: Pair = (4, 4),
    kernel_h: int = 3,
    pad: Pads = (1, 1, 1, 1),
    down: int = 1,
    below: int = 1,
    dtype: DType = DType.UINT8,
) -> Workload:
    """A convolution of windows of three columns, whose weights are points of minimal filtering."""
    stride, dilation = (down, 1), (below, 1)
    work = _qlinear(
        "qlinear_winograd2d",
        (1, ci, *size, 1, LANES),
        (co, 6, ci, kernel_h, LANES // 2, LANES, 2),
        (co, *_outside(size, (kernel_h, 3), stride, pad, dilation)),
        {"stride": stride, "pad": pad, "dilation": dilation},
        dtype,
    )
    return with_wide_weights(work)


def points(shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.int16]:
    """Weights of minimal filtering [Co, 6, ...], of taps that are often at an end of int8."""
    taps = rng.choice(np.array([-128, -127, -3, 0, 5, 127]), (3, shape[0], *shape[2:]))
    a, b, c = taps.astype(np.int16)
    values = (6 * a, -4 * (a + b + c), -4 * (a - b + c), a + 2 * b + 4 * c, a - 2 * b + 4 * c)
    return np.stack((*values, 24 * c), axis=1)


def image_convolution(
    channels: int = 3,
    co: int = 1,
    size: Pair = (6, 5),
    kernel: Pair = (3, 3),
    stride: Pair = (2, 2),
    pad: Pads = (1, 1, 1, 1),
    dtype: DType = DType.UINT8,
    together: int = QUAD,
) -> Workload:
    """A convolution of an image of few channels, side by side in its rows."""
    height, width = _outside(size, kernel, stride, pad, (1, 1))
    top, left, bottom, _ = pad
    groups = -(-kernel[1] * channels // together)
    row = size[1] * channels
    read = (width - 1) * stride[1] * channels + groups * together
    return _qlinear(
        "qlinear_conv2d",
        (1, 1, size[0], row, 1, 1),
        (co, 1, kernel[0], groups, 1, LANES, together),
        (co, height, width),
        {
            "stride": (stride[0], stride[1] * channels),
            "pad": (top, left * channels, bottom, max(0, read - row - left * channels)),
            "dilation": (1, 1),
        },
        dtype,
    )


def depthwise(
    blocks: int = 1,
    size: Pair = (4, 4),
    kernel: Pair = (3, 3),
    stride: Pair = (1, 1),
    pad: Pads = (1, 1, 1, 1),
    dilation: Pair = (1, 1),
    dtype: DType = DType.UINT8,
    together: int = QUAD,
) -> Workload:
    """A convolution of every channel by itself; taps are filled up to quads, or to wide pairs."""
    height, width = _outside(size, kernel, stride, pad, dilation)
    top, left, bottom, _ = pad
    parts = -(-kernel[1] // together)
    read = (width - 1) * stride[1] + (parts * together - 1) * dilation[1] + 1
    made = _qlinear(
        "qlinear_depthwise2d",
        (1, blocks, *size, 1, LANES),
        (blocks, kernel[0], parts, LANES, together),
        (blocks, height, width),
        {
            "stride": stride,
            "pad": (top, left, bottom, max(0, read - size[1] - left)),
            "dilation": dilation,
        },
        dtype,
    )
    return made if together == QUAD else with_wide_weights(made)


def transposed(
    ci: int = 2,
    co: int = 1,
    size: Pair = (3, 4),
    kernel: Pair = (2, 2),
    stride: Pair = (2, 3),
    pad: Pads = (1, 1, 0, 0),
    dtype: DType = DType.UINT8,
    together: int = QUAD,
) -> Workload:
    """A transposed convolution; kernel and pad are those of each phase's convolution."""
    rows, columns = _outside(size, kernel, (1, 1), pad, (1, 1))
    return _qlinear(
        "qlinear_conv2d_transpose",
        (1, ci, *size, 1, LANES),
        (co, *stride, ci, *kernel, LANES // together, LANES, together),
        (co, rows * stride[0], columns * stride[1]),
        {"stride": stride, "pad": pad},
        dtype,
    )


def with_wide_weights(work: Workload) -> Workload:
    """A layer whose weights are int16."""
    data, weight, *rest = work.inputs
    return replace(work, inputs=(data, replace(weight, dtype=DType.INT16), *rest))


def with_zeros_around(workload: Workload) -> Workload:
    """The workload with zeros around its image, as behind a ReLU."""
    attrs = {**dict(workload.attrs), "fill": 0}
    return replace(workload, attrs=tuple(attrs.items()))


def with_weight_zero(work: Workload) -> Workload:
    """A layer whose weights have a zero point."""
    zero = TensorSpec("weight_zero", work.inputs[1].shape[-2:], DType.INT8)
    return replace(work, inputs=(*work.inputs, zero))


def of_channels(work: Workload, channels: int) -> Workload:
    """A convolution of one block, of which only so many channels have weights."""
    data, weight, *rest = work.inputs
    *outer, _, lanes, together = weight.shape
    shape = (*outer, channels // together, lanes, together)
    return replace(work, inputs=(data, replace(weight, shape=shape), *rest))


def in_planes(work: Workload, planes: int) -> Workload:
    """A depthwise layer whose weights are sums of planes."""
    data, weight, *rest = work.inputs
    shape = (*weight.shape[:3], planes, *weight.shape[3:])
    return replace(work, inputs=(data, replace(weight, shape=shape), *rest))


def with_addend(work: Workload) -> Workload:
    """A layer that adds a float32 of every channel."""
    addend = TensorSpec("addend", work.inputs[3].shape, DType.FLOAT32)
    return replace(work, inputs=(*work.inputs, addend))


def as_reals(work: Workload) -> Workload:
    """A layer whose results are float32."""
    attrs = tuple(each for each in work.attrs if each[0] not in ("zero", "lo", "hi"))
    out = replace(work.outputs[0], dtype=DType.FLOAT32)
    return replace(work, outputs=(out,), attrs=attrs)


def with_other(
    work: Workload, function: str = "add", dtype: DType = DType.UINT8, to: DType = DType.INT8
) -> Workload:
    """A layer whose results are combined with those of another one."""
    (out,) = work.outputs
    grids: dict[str, AttrValue] = {
        "function": function,
        "a_scale": 0.37,
        "a_zero": 3,
        "b_scale": 0.21,
        "b_zero": 77,
    }
    ends: dict[str, AttrValue] = {"to_scale": 0.43, "to_zero": 5, "to_lo": 2, "to_hi": 99}
    return replace(
        work,
        inputs=(*work.inputs, TensorSpec("other", out.shape, dtype)),
        outputs=(replace(out, dtype=to),),
        attrs=(*work.attrs, *grids.items(), *ends.items()),
    )


def _outside(size: Pair, kernel: Pair, stride: Pair, pad: Pads, dilation: Pair) -> Pair:
    top, left, bottom, right = pad
    height = (size[0] + top + bottom - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    width = (size[1] + left + right - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
    return height, width


def _qlinear(
    operator: str,
    data: tuple[int, ...],
    weight: tuple[int, ...],
    out: tuple[int, int, int],
    window: Mapping[str, AttrValue],
    dtype: DType,
) -> Workload:
    channels = (out[0], LANES)
    inputs = (
        TensorSpec("data", data, dtype),
        TensorSpec("weight", weight, DType.INT8),
        TensorSpec("bias", channels, DType.INT32),
        TensorSpec("scale", channels, DType.FLOAT32),
    )
    low, high = (0, 255) if dtype is DType.UINT8 else (-128, 127)
    fills = {"fill": low + 117, "zero": low + 131, "lo": low + 9, "hi": high}
    output = TensorSpec("out", (1, *out, 1, LANES), dtype)
    return Workload(operator, inputs, (output,), (*window.items(), *fills.items()))


EXAMPLES: Final[Mapping[str, Workload]] = {
    "qlinear_conv2d": convolution(2, 2, (5, 4)),
    "qlinear_conv2d_signed": convolution(
        1, 2, (7, 6), stride=(2, 1), pad=(0, 1, 2, 0), dtype=DType.INT8
    ),
    "qlinear_conv2d_dilated": convolution(size=(7, 7), dilation=(2, 3), pad=(2, 3, 2, 3)),
    "qlinear_conv2d_1x1": convolution(2, 1, (3, 5), (1, 1), pad=(0, 0, 0, 0)),
    "qlinear_conv2d_image": image_convolution(),
    "qlinear_conv2d_pairs": convolution(2, 1, (5, 4), stride=(1, 2), dtype=DType.INT8, together=2),
    "qlinear_conv2d_pairs_1x1": convolution(1, 2, (4, 6), (1, 1), (2, 2), (0, 0, 0, 0), together=2),
    "qlinear_conv2d_pairs_image": image_convolution(together=2),
    "qlinear_conv2d_wide": with_wide_weights(convolution(2, 2, (4, 5), together=2)),
    "qlinear_conv2d_wide_image": with_wide_weights(image_convolution(together=2, dtype=DType.INT8)),
    "qlinear_conv2d_zero": with_weight_zero(convolution(2, 2, (4, 5), stride=(2, 1))),
    "qlinear_conv2d_zero_1x1": with_other(
        with_weight_zero(convolution(2, 1, (1, 5), (1, 1), pad=(0, 0, 0, 0), dtype=DType.INT8))
    ),
    "qlinear_conv2d_zero_grouped": with_weight_zero(
        with_addend(convolution(4, 2, (3, 4), groups=2))
    ),
    "qlinear_conv2d_few": of_channels(convolution(1, 2, (4, 5)), 8),
    "qlinear_conv2d_few_pairs": of_channels(convolution(1, 1, (3, 4), together=2), 6),
    "qlinear_conv2d_grouped": with_addend(convolution(4, 6, (5, 4), groups=2)),
    "qlinear_conv2d_one_block_groups": convolution(3, 3, (4, 3), groups=3, dtype=DType.INT8),
    "qlinear_conv2d_addend": with_addend(convolution(1, 2)),
    "qlinear_conv2d_reals": with_addend(as_reals(convolution(1, 2))),
    "qlinear_conv2d_other": with_other(with_addend(convolution(2, 1))),
    "qlinear_conv2d_other_grouped": with_other(
        convolution(2, 4, groups=2, dtype=DType.INT8), "mul", DType.INT8, DType.UINT8
    ),
    "qlinear_conv2d_transpose": transposed(),
    "qlinear_conv2d_transpose_other": with_other(
        with_addend(transposed(1, 2, stride=(1, 2), dtype=DType.INT8)), "sub"
    ),
    "qlinear_winograd2d": winograd(2, 2, (4, 8)),
    "qlinear_winograd2d_part": winograd(1, 2, (7, 7), 2, (0, 1, 1, 1), 2, 2, DType.INT8),
    "qlinear_winograd2d_other": with_other(with_addend(winograd(1, 1, (2, 4)))),
    "qlinear_depthwise2d": depthwise(2, (5, 4)),
    "qlinear_depthwise2d_planes": in_planes(depthwise(2, (5, 6), kernel=(3, 5)), 2),
    "qlinear_depthwise2d_pairs": depthwise(2, (5, 6), together=2),
    "qlinear_depthwise2d_pairs_signed": depthwise(
        1, (6, 9), (3, 5), (1, 2), (0, 4, 2, 3), (2, 3), DType.INT8, together=2
    ),
    "qlinear_depthwise2d_addend": with_addend(as_reals(depthwise(2, (4, 3)))),
    "qlinear_depthwise2d_signed": depthwise(
        1, (7, 6), kernel=(2, 5), stride=(2, 2), pad=(0, 2, 1, 2), dtype=DType.INT8
    ),
}
