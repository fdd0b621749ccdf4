"""Small workloads of every operator, their inputs and nests, and strategies that make more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st
from kit.kernels import qlinear, qlinear_elements
from tilefarm.dtype import DType
from tilefarm.target import TARGETS
from tilefarm.workload import NO_BORDER, AttrValue, TensorSpec, Workload

from compile_worker.ir.expr import (
    INDEX,
    Add,
    Const,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Select,
    Sub,
    Var,
)
from compile_worker.ir.func import Func
from compile_worker.te import nest_of

LANES: Final = 16
SIM: Final = TARGETS["sim"]


def workload(
    operator: str,
    inputs: Mapping[str, tuple[DType, tuple[int, ...]]],
    out: tuple[DType, tuple[int, ...]],
    **attrs: AttrValue,
) -> Workload:
    """A workload from types and shapes; the output is called `out`."""
    specs = tuple(TensorSpec(name, shape, dtype) for name, (dtype, shape) in inputs.items())
    output = TensorSpec("out", out[1], out[0])
    return Workload(operator, specs, (output,), tuple(attrs.items()))


def conv2d(
    ci: int = 1,
    co: int = 1,
    height: int = 4,
    width: int = 4,
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = (1, 1, 1, 1),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
    planes: int = 1,
    data_planes: int = 1,
    out_planes: int = 1,
    lo: int | None = None,
    hi: int | None = None,
    border: tuple[int, int, int, int] = NO_BORDER,
    rows: int = 1,
    element: tuple[int, int] = (1, LANES),
) -> Workload:
    """A convolution; `ci`, `co` and `groups` count blocks of channels, as `element` [b, c] has.

    With two `planes` weights have 16 bits, with two `data_planes` or `out_planes` data or results.
    `rows` counts images, `b` together.
    """
    top, left, bottom, right = pad
    block = element[1]
    out_h = (height + top + bottom - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    out_w = (width + left + right - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
    out_h, out_w = out_h + border[0] + border[2], out_w + border[1] + border[3]
    grouped: dict[str, AttrValue] = {"groups": groups} if groups > 1 else {}
    bordered: dict[str, AttrValue] = {"border": border} if any(border) else {}
    plain = workload(
        "conv2d",
        {
            "data": (DType.INT8, (rows, *_axis(data_planes), ci, height, width, *element)),
            "weight": (
                DType.INT8,
                (co, *_axis(planes), ci // groups, *kernel, block, block),
            ),
        },
        (DType.INT8, (rows, *_axis(out_planes), co, out_h, out_w, *element)),
        stride=stride,
        pad=pad,
        dilation=dilation,
        **_clips(lo, hi, out_planes),
        **grouped,
        **bordered,
        **_planes(planes, data_planes, out_planes),
    )
    return with_epilogue(plain)


def border(
    shape: tuple[int, ...] = (1, 2, 5, 6, 1, LANES),
    around: tuple[int, ...] = (1, 2, 0, 1),
    fill: int = -7,
) -> Workload:
    """The border of a blocked tensor [..., H, W, b, c]."""
    return workload("border", {}, (DType.INT8, shape), border=around, fill=fill)


def quantize(**attrs: AttrValue) -> Workload:
    """A small image of float32 as int8, in blocks."""
    x, out = (DType.FLOAT32, (1, 19, 3, 2)), (DType.INT8, (1, 2, 3, 2, 1, LANES))
    return workload("quantize", {"x": x}, out, inv_scale=12.5, **attrs)


def quantize_windows(**attrs: AttrValue) -> Workload:
    """Lopsided windows over a small image of float32 as int8, in the channels."""
    return workload(
        "quantize_windows",
        {"x": (DType.FLOAT32, (1, 3, 9, 7))},
        (DType.INT8, (1, 2, 4, 3, 1, LANES)),
        inv_scale=12.5,
        kernel=(3, 2),
        stride=(2, 3),
        pad=(1, 0, 2, 1),
        dilation=(2, 1),
        **attrs,
    )


def conv2d_transpose(
    ci: int = 1,
    co: int = 1,
    height: int = 3,
    width: int = 3,
    kernel: tuple[int, int] = (2, 2),
    stride: tuple[int, int] = (2, 2),
    pad: tuple[int, int, int, int] = (1, 1, 0, 0),
    element: tuple[int, int] = (1, LANES),
) -> Workload:
    """A transposed convolution; kernel and pad are those of each phase's convolution."""
    top, left, bottom, right = pad
    rows, columns = height + top + bottom - kernel[0] + 1, width + left + right - kernel[1] + 1
    plain = workload(
        "conv2d_transpose",
        {
            "data": (DType.INT8, (1, ci, height, width, *element)),
            "weight": (DType.INT8, (co, *stride, ci, *kernel, element[1], element[1])),
        },
        (DType.INT8, (1, co, rows * stride[0], columns * stride[1], *element)),
        stride=stride,
        pad=pad,
        lo=-128,
        hi=127,
    )
    return with_epilogue(plain)


def matmul(
    batches: int = 2,
    rows: int = 3,
    inner: int = 2,
    columns: int = 2,
    *,
    bias: int = 0,
    shift: bool = True,
    element: tuple[int, int] = (1, LANES),
) -> Workload:
    """A product of activations: `rows` of vectors, `inner` and `columns` in blocks of lanes.

    `bias` is the number of tiles that all blocks share.
    """
    block = element[1]
    tensors: dict[str, tuple[DType, tuple[int, ...]]] = {
        "data": (DType.INT8, (batches, inner, rows, *element)),
        "weight": (DType.INT8, (batches, inner, columns, block, block)),
    }
    if bias:
        tensors["bias"] = (DType.INT8, (bias, block, block))
        tensors["unit"] = (DType.INT8, element)
    if shift:
        tensors["shift"] = (DType.INT32, (1,))
    out = (DType.INT8, (batches, columns, rows, *element))
    return workload("matmul", tensors, out, lo=-128, hi=127)


def dense(
    ci: int = 2,
    co: int = 1,
    rows: int = 1,
    lo: int | None = None,
    hi: int | None = None,
    planes: int = 1,
    data_planes: int = 1,
    out_planes: int = 1,
) -> Workload:
    """A fully connected layer; `ci` and `co` count blocks of 16 channels."""
    plain = workload(
        "dense",
        {
            "data": (DType.INT8, (rows, *_axis(data_planes), ci, 1, LANES)),
            "weight": (DType.INT8, (co, *_axis(planes), ci, LANES, LANES)),
        },
        (DType.INT8, (rows, *_axis(out_planes), co, 1, LANES)),
        **_clips(lo, hi, out_planes),
        **_planes(planes, data_planes, out_planes),
    )
    return with_epilogue(plain)


def _planes(weights: int, data: int, out: int) -> dict[str, int]:
    """The attributes of a layer whose weights, data or results are planes."""
    given = {"planes": weights, "data_planes": data, "out_planes": out}
    return {name: planes for name, planes in given.items() if planes > 1}


def _clips(lo: int | None, hi: int | None, out_planes: int) -> dict[str, int]:
    """The bounds of results, by default all that planes hold."""
    least, most = (-128, 127) if out_planes == 1 else (-32_639, 32_639)
    return {"lo": least if lo is None else lo, "hi": most if hi is None else hi}


def _axis(planes: int) -> tuple[int, ...]:
    """The axis of a tensor that is planes."""
    return (planes,) if planes > 1 else ()


def with_epilogue(
    work: Workload, bias: int = 1, shift: str = "block", *, factor: bool = False
) -> Workload:
    """A layer with other tensors behind its sums.

    `bias` is the number of tiles for each block of channels, 0 for no bias; `shift` is "block" for
    one number a block, "lanes" for one a channel, "" for none. A `factor` needs MUL.
    """
    co, block = work.inputs[1].shape[0], work.inputs[1].shape[-1]
    batch = work.inputs[0].shape[-2]
    specs = list(work.inputs[:2])
    if bias:
        tiles = (2, bias) if work.is_in_planes else (bias,)
        specs.append(TensorSpec("bias", (co, *tiles, block, block), DType.INT8))
        specs.append(TensorSpec("unit", (batch, block), DType.INT8))
    if factor:
        specs.append(TensorSpec("factor", (co, batch, block), DType.INT32))
    if shift:
        shape = (co,) if shift == "block" else (co, batch, block)
        specs.append(TensorSpec("shift", shape, DType.INT32))
    return Workload(work.operator, tuple(specs), work.outputs, work.attrs)


def pool(operator: str, pad: tuple[int, int, int, int] = (0, 1, 1, 0)) -> Workload:
    """A 3x2 window with stride 2, 1 over a 6x5 image."""
    top, left, bottom, right = pad
    out_h, out_w = (6 + top + bottom - 3) // 2 + 1, 5 + left + right - 2 + 1
    inputs: dict[str, tuple[DType, tuple[int, ...]]] = {"x": (DType.INT8, (1, 2, 6, 5, 1, LANES))}
    attrs: dict[str, AttrValue] = {"kernel": (3, 2), "stride": (2, 1), "pad": pad}
    if operator == "avg_pool2d":
        inputs["mul"] = (DType.INT32, (out_h, out_w))
        attrs |= {"shift": 9, "lo": -100, "hi": 100}
    return workload(operator, inputs, (DType.INT8, (1, 2, out_h, out_w, 1, LANES)), **attrs)


def window(
    operator: str,
    blocks: int = 2,
    image: tuple[int, int] = (6, 5),
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (2, 2),
    pad: tuple[int, int, int, int] = (1, 1, 1, 1),
    shift: int = 6,
    unit: tuple[int, int, int] = (1, 1, LANES),
) -> Workload:
    """Pooling on the accelerator: window_max2d, or window_sum2d; `unit` is batches, b and c."""
    batches, b, c = unit
    out = [
        (size + pad[at] + pad[at + 2] - kernel[at]) // stride[at] + 1
        for at, size in enumerate(image)
    ]
    tile = "identity" if operator == "window_max2d" else "scale"
    attrs: dict[str, AttrValue] = {"kernel": kernel, "stride": stride, "pad": pad}
    if operator == "window_sum2d":
        attrs |= {"shift": shift, "lo": -100, "hi": 100}
    inputs = {
        "x": (DType.INT8, (batches, blocks, *image, b, c)),
        tile: (DType.INT8, (c, c)),
    }
    return workload(operator, inputs, (DType.INT8, (batches, blocks, *out, b, c)), **attrs)


def scaled_add(
    shape: tuple[int, ...] = (1, 2, 3, 4, 1, LANES), shift: int = 6, lo: int = 0
) -> Workload:
    """Two blocked tensors of a shape, scaled and added on the accelerator."""
    tensor = (DType.INT8, shape)
    tile = (DType.INT8, (shape[-1], shape[-1]))
    inputs = {"a": tensor, "b": tensor, "scale_a": tile, "scale_b": tile}
    return workload("scaled_add", inputs, tensor, shift=shift, lo=lo, hi=127)


def real(
    operator: str,
    out: tuple[int, ...],
    attrs: Mapping[str, AttrValue] | None = None,
    **inputs: tuple[int, ...],
) -> Workload:
    """An operator on float32 tensors of these shapes."""
    specs = {name: (DType.FLOAT32, shape) for name, shape in inputs.items()}
    return workload(operator, specs, (DType.FLOAT32, out), **(attrs or {}))


def _real_window(stride: tuple[int, int], pad: tuple[int, int, int, int]) -> dict[str, AttrValue]:
    return {"stride": stride, "pad": pad, "dilation": (1, 1)}


SCRIPT: Final = """
def scaled(x, shift, out, *, scale):
    for n in range(x.shape[0]):
        for i in range(x.shape[1]):
            out[n, i] = max(scale * x[n, i] + shift[i], 0.25)
"""

_REAL_EXAMPLES: Final[Mapping[str, Workload]] = {
    "real_map": real("real_map", (2, 21), {"function": "swish"}, x=(2, 21)),
    "real_zip": real(
        "real_zip", (3, 4, 19), {"function": "div", "lo": -2.0}, a=(3, 1, 19), b=(1, 4, 19)
    ),
    "script": real(
        "script", (3, 21), {"source": SCRIPT, "number_scale": 1.5}, x=(3, 21), shift=(21,)
    ),
    "concat": real("concat", (2, 45), x0=(2, 5), x1=(2, 33), x2=(2, 7)),
    "real_reduce": real("real_reduce", (3, 20), {"kind": "mean"}, x=(3, 7, 20)),
    "real_normalize": real(
        "real_normalize", (3, 19, 1), {"epsilon": 1e-5, "centered": 1}, x=(3, 19, 1)
    ),
    "real_softmax": real("real_softmax", (2, 5, 6), x=(2, 5, 6)),
    "real_matmul": real(
        "real_matmul", (2, 3, 19), {"lo": 0.0}, a=(2, 3, 5), b=(1, 5, 19), bias=(19,)
    ),
    "real_conv2d": real(
        "real_conv2d",
        (1, 2, 2, 2, 5),
        {**_real_window((2, 1), (1, 1, 1, 1)), "hi": 6.0},
        x=(1, 2, 2, 4, 6),
        weight=(2, 2, 3, 4, 2),
        bias=(2, 2),
    ),
    "real_take": real("real_take", (2, 5, 19), places=(2, 19), x=(1, 5, 7)),
    "real_pool2d": real(
        "real_pool2d",
        (3, 2, 4),
        {**_real_window((2, 1), (0, 0, 0, 0)), "kind": "max", "kernel": (2, 2)},
        x=(3, 5, 5),
    ),
}

REAL_VARIANTS: Final[Mapping[str, Workload]] = {
    "gather_floats": workload(
        "gather",
        {"x": (DType.FLOAT32, (1, 45)), "index": (DType.INT32, (21,))},
        (DType.FLOAT32, (1, 21)),
    ),
    "real_map_bounded": real(
        "real_map", (1, 9), {"function": "leaky_relu", "a": 0.3, "lo": -1.0, "hi": 6.0}, x=(1, 9)
    ),
    "real_zip_by_channel": real(
        "real_zip", (2, 5, 7), {"function": "slope"}, a=(2, 5, 7), b=(1, 5, 1)
    ),
    "real_reduce_row": real("real_reduce", (2, 1), {"kind": "mean"}, x=(2, 130, 1)),
    "real_reduce_last": real("real_reduce", (3, 1), {"kind": "max"}, x=(3, 11, 1)),
    "real_normalize_root": real(
        "real_normalize", (2, 5, 6), {"epsilon": 0.5, "centered": 0}, x=(2, 5, 6)
    ),
    "real_softmax_last": real("real_softmax", (3, 19, 1), x=(3, 19, 1)),
    "real_matmul_same_rows": real("real_matmul", (2, 3, 6), a=(1, 3, 5), b=(2, 5, 6)),
    "real_conv2d_unpadded": real(
        "real_conv2d",
        (2, 1, 3, 1, 20),
        _real_window((1, 1), (0, 0, 0, 0)),
        x=(2, 1, 4, 1, 20),
        weight=(1, 4, 1, 1, 3),
        bias=(1, 3),
    ),
    "real_conv2d_of_vectors": real(
        "real_conv2d",
        (2, 1, 32, 4, 7),
        {**_real_window((1, 1), (1, 1, 1, 1)), "lo": 0.0},
        x=(2, 1, 3, 4, 7),
        weight=(1, 3, 3, 3, 32),
        bias=(1, 32),
    ),
    "real_matmul_of_vectors": real("real_matmul", (1, 6, 64), a=(1, 6, 9), b=(1, 9, 64)),
    "real_matmul_turned": real(
        "real_matmul", (2, 6, 64), {"trans_a": 1}, a=(2, 9, 6), b=(2, 9, 64)
    ),
    "real_take_of_each": real("real_take", (2, 3, 4), places=(2, 4), x=(2, 3, 6)),
    "real_pool2d_padded": real(
        "real_pool2d",
        (3, 3, 6),
        {**_real_window((2, 1), (1, 1, 0, 1)), "kind": "sum", "kernel": (2, 2)},
        x=(3, 5, 5),
    ),
}
"""Other shapes of the nests on float32, for tests of what they mean."""


_CHANNELS: Final = (DType.INT32, (2, 1, LANES))
_BLOCKED: Final = (DType.INT8, (1, 2, 3, 5, 1, LANES))

EXAMPLES: Final[Mapping[str, Workload]] = {
    "conv2d": conv2d(co=2, height=5, width=4),
    "conv2d_strided": with_epilogue(
        conv2d(2, 1, 7, 6, stride=(2, 1), pad=(0, 1, 2, 0), lo=0, hi=100), shift="lanes"
    ),
    "conv2d_1x1": conv2d(2, 2, kernel=(1, 1), pad=(0, 0, 0, 0)),
    "conv2d_dilated": conv2d(1, 1, 7, 7, dilation=(2, 3), pad=(2, 3, 2, 3)),
    "conv2d_shift_by_lane": with_epilogue(conv2d(co=2, height=3, width=5), shift="lanes"),
    "conv2d_unbiased": with_epilogue(conv2d(2, 2, kernel=(1, 1), pad=(0, 0, 0, 0)), bias=0),
    "conv2d_depthwise": conv2d(3, 3, groups=3),
    "conv2d_grouped": conv2d(4, 2, 5, 3, stride=(2, 1), groups=2),
    "conv2d_transpose": conv2d_transpose(2, 2),
    "matmul": matmul(),
    "conv2d_planes": conv2d(2, 2, 5, 4, stride=(2, 1), planes=2),
    "conv2d_data_planes": conv2d(2, 2, 5, 4, stride=(2, 1), data_planes=2, out_planes=2),
    "conv2d_out_planes": conv2d(2, 2, 4, 3, out_planes=2),
    "conv2d_depthwise_planes": conv2d(3, 3, groups=3, data_planes=2, out_planes=2),
    "conv2d_grouped_planes": conv2d(4, 2, 5, 3, groups=2, data_planes=2, out_planes=2),
    "conv2d_all_planes": conv2d(2, 2, planes=2, data_planes=2, out_planes=2),
    "conv2d_bordered": conv2d(1, 2, 4, 3, border=(1, 2, 0, 1)),
    "conv2d_bordered_planes": conv2d(2, 2, 3, 4, out_planes=2, border=(0, 1, 2, 1), rows=2),
    "conv2d_bordered_groups": conv2d(4, 2, 5, 3, groups=2, border=(1, 1, 1, 1)),
    "conv2d_bordered_depthwise": conv2d(3, 3, 4, 4, groups=3, data_planes=2, border=(0, 0, 1, 0)),
    "dense": dense(3, 2),
    "dense_all_planes": dense(3, 2, rows=2, planes=2, data_planes=2, out_planes=2),
    "dense_data_planes": with_epilogue(dense(3, 2, rows=2, data_planes=2), bias=2, shift="lanes"),
    "dense_planes": with_epilogue(dense(3, 2, rows=2, planes=2), bias=2, shift="lanes"),
    "dense_shift_by_lane": with_epilogue(dense(3, 2), shift="lanes"),
    "dense_two_bias_tiles": with_epilogue(dense(2, 3), bias=2, shift=""),
    "scaled_add": scaled_add(),
    "scaled_add_wide_shift": scaled_add((1, 3, 1, LANES), shift=17, lo=-128),
    "scaled_add_plain": scaled_add((2, 2, 3, 1, LANES), shift=0),
    "window_max2d": window("window_max2d"),
    "window_max2d_overlapping": window("window_max2d", stride=(1, 1), pad=(0, 1, 1, 0)),
    "window_sum2d": window("window_sum2d"),
    "window_sum2d_global": window("window_sum2d", 3, (4, 3), (4, 3), (1, 1), (0, 0, 0, 0)),
    "quantize": quantize(),
    "quantize_offset": quantize(offset=-37.25),
    "quantize_windows": quantize_windows(),
    "quantize_windows_filled": quantize_windows(offset=-37.25, fill=-37),
    "dequantize": workload(
        "dequantize",
        {"x": (DType.INT8, (1, 2, 3, 2, 1, LANES))},
        (DType.FLOAT32, (1, 19, 3, 2)),
        scale=0.1,
    ),
    "add": workload(
        "add", {"a": _BLOCKED, "b": _BLOCKED}, _BLOCKED, mul_a=77, mul_b=-31, shift=6, lo=0, hi=127
    ),
    "add_plain": workload(
        "add", {"a": _BLOCKED, "b": _BLOCKED}, _BLOCKED, mul_a=1, mul_b=1, shift=0, lo=-128, hi=127
    ),
    "affine": workload(
        "affine",
        {"x": _BLOCKED, "mul": _CHANNELS, "add": _CHANNELS, "shift": _CHANNELS},
        _BLOCKED,
        lo=-128,
        hi=127,
    ),
    "max_pool2d": pool("max_pool2d"),
    "max_pool2d_unpadded": pool("max_pool2d", (0, 0, 0, 0)),
    "avg_pool2d": pool("avg_pool2d"),
    "relayout": workload(
        "relayout",
        {"x": (DType.INT8, (1, 2, 3, 2, 1, LANES))},
        (DType.INT8, (1, 8, 1, LANES)),
        logical_in=(1, 20, 3, 2),
        logical_out=(1, 120),
    ),
    "softmax": workload(
        "softmax",
        {"x": (DType.INT8, (1, 1, 1, LANES)), "table": (DType.FLOAT32, (256,))},
        (DType.FLOAT32, (1, 10)),
    ),
    "lookup": workload("lookup", {"x": _BLOCKED, "table": (DType.INT8, (256,))}, _BLOCKED),
    "lookup_by_channel": workload(
        "lookup", {"x": _BLOCKED, "table": (DType.INT8, (2, LANES, 256))}, _BLOCKED
    ),
    "product": workload(
        "product",
        {"a": _BLOCKED, "b": _BLOCKED, "table": (DType.INT32, (256,))},
        _BLOCKED,
        shift=9,
        lo=-100,
        hi=127,
    ),
    "border": border(),
    "border_of_rows": border((2, 3, 4, 4, 1, LANES), (1, 0, 2, 0), fill=127),
    "border_of_columns": border((1, 2, 2, 3, 3, 2, 8), (0, 1, 0, 0), fill=-128),
    "as_strided": workload(
        "as_strided",
        {"x": (DType.INT8, (2, 45))},
        (DType.INT8, (2, 5, 4, 2)),
        strides=(1, 10, 5),
        offset=3,
    ),
    "gather": workload(
        "gather", {"x": (DType.INT8, (2, 45)), "index": (DType.INT32, (70,))}, (DType.INT8, (2, 70))
    ),
    "gather_filled": workload(
        "gather",
        {"x": (DType.INT8, (2, 45)), "index": (DType.INT32, (70,))},
        (DType.INT8, (2, 70)),
        fill=-127,
    ),
    "concat_of_int8": workload(
        "concat",
        {"x0": (DType.INT8, (2, 48)), "x1": (DType.INT8, (2, 16))},
        (DType.INT8, (2, 64)),
    ),
    **_REAL_EXAMPLES,
    **qlinear.EXAMPLES,
    **qlinear_elements.EXAMPLES,
}

EACH_OPERATOR: Final = frozenset({work.operator: name for name, work in EXAMPLES.items()}.values())
"""One example of each operator, the last: for what the others are shown by in another test."""


def each_operator_first(names: Iterable[str]) -> list[Any]:
    """As parameters of a test: those of `EACH_OPERATOR`, and the others in the long suites."""
    slow = pytest.mark.slow
    return [pytest.param(name, marks=() if name in EACH_OPERATOR else slow) for name in names]


"""A small workload for every operator and every shape of its nest."""


def nest(name: str) -> Func:
    """The nest of an example."""
    return nest_of(EXAMPLES[name], SIM)


def inputs_of(work: Workload, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Arrays for a workload's inputs that exercise its arithmetic; shifts are 0 to 10.

    Those of sums in planes are 8 to 18, or 16 to 26: there is as much more to shift.
    """
    rng = np.random.default_rng(seed)
    arrays = {spec.name: _array(spec, rng) for spec in work.inputs}
    if work.operator == "qlinear_winograd2d":
        arrays["weight"] = qlinear.points(work.inputs[1].shape, rng)
    if "shift" in arrays:
        arrays["shift"] += 8 * (work.planes + work.data_planes - 2)
    if work.operator == "qlinear_avg_pool2d":
        arrays["scale"] *= _MANY_PRODUCTS
    if "grid" in arrays:
        scales, zeros = rng.uniform(0.01, 0.03, (2, len(arrays["grid"])))
        arrays["grid"] = np.stack((scales, np.rint(zeros * 8500)), axis=1).astype(np.float32)
    return arrays


_MANY_PRODUCTS: Final = np.float32(128)
"""By how much sums of a few steps are smaller than those of products."""


def begun(work: Workload) -> dict[str, npt.NDArray[Any]]:
    """Zeros for an output of which a workload leaves a part as it is; nothing for others."""
    (out,) = work.outputs
    return {out.name: np.zeros(out.shape, out.dtype.value)} if any(work.border) else {}


_ENDS: Final = {DType.INT8: (-128, 127), DType.UINT8: (0, 255)}


def _array(spec: TensorSpec, rng: np.random.Generator) -> npt.NDArray[Any]:
    if spec.name == "table" and spec.dtype.is_float and len(spec.shape) == 1:
        return np.array([2.0 ** (-step / 16) for step in range(256)], np.float32)
    if spec.name == "scale" and spec.dtype.is_float:
        return rng.uniform(2**-11, 2**-9, spec.shape).astype(np.float32)
    if spec.dtype.is_float:
        return rng.normal(0, 6, spec.shape).astype(np.float32)
    if spec.name == "shift":
        return rng.integers(0, 11, spec.shape).astype(np.int32)
    if spec.name == "index":
        return rng.integers(-5, 50, spec.shape).astype(np.int32)
    low, high = _ENDS.get(spec.dtype, (-3000, 3000))
    return rng.integers(low, high, spec.shape, endpoint=True).astype(spec.dtype.value)


@st.composite
def convolutions(draw: st.DrawFn) -> Workload:
    """Small convolutions: any kernel up to 3x3, stride 1 or 2, uneven pads and borders, planes."""
    out_planes, ci = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    is_depthwise = draw(st.booleans())
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    pads = st.integers(0, 2)
    return conv2d(
        ci=ci,
        co=ci if is_depthwise else draw(st.integers(1, 2)),
        groups=ci if is_depthwise else 1,
        height=draw(st.integers(kernel[0], 6)),
        width=draw(st.integers(kernel[1], 6)),
        kernel=kernel,
        stride=(draw(st.integers(1, 2)), draw(st.integers(1, 2))),
        pad=(draw(pads), draw(pads), draw(pads), draw(pads)),
        planes=1 if is_depthwise else draw(st.integers(1, 2)),
        data_planes=draw(st.integers(1, 2)),
        out_planes=out_planes,
        lo=draw(st.sampled_from([None, 0])),
        border=draw(borders()),
    )


def borders() -> st.SearchStrategy[tuple[int, int, int, int]]:
    """No border, or a lopsided one."""
    most = st.integers(0, 2)
    return st.one_of(st.just(NO_BORDER), st.tuples(most, most, most, most))


@st.composite
def fills(draw: st.DrawFn) -> Workload:
    """Borders alone, of images that are blocked in any way, in planes or not."""
    around = draw(borders().filter(any))
    few = st.integers(1, 3)
    outer = draw(st.lists(few, min_size=1, max_size=3))
    rows, columns = (draw(few) + around[side] + around[side + 2] for side in (0, 1))
    element = draw(st.sampled_from([(1, 16), (1, 8), (2, 8), (1, 4), (2, 16)]))
    return border((*outer, rows, columns, *element), around, draw(st.integers(-128, 127)))


@st.composite
def denses(draw: st.DrawFn) -> Workload:
    """Small fully connected layers."""
    few = st.integers(1, 2)
    out_planes = draw(few)
    return dense(
        draw(st.integers(1, 4)),
        draw(st.integers(1, 3)),
        rows=draw(few),
        lo=draw(st.integers(-128 * out_planes, 0)),
        planes=draw(few),
        data_planes=draw(few),
        out_planes=out_planes,
    )


def workloads() -> st.SearchStrategy[Workload]:
    """Any operator: generated where schedules matter, the examples otherwise."""
    return st.one_of(convolutions(), denses(), st.sampled_from(list(EXAMPLES.values())))


def nests() -> st.SearchStrategy[Func]:
    """The nest of any operator."""
    return workloads().map(lambda work: nest_of(work, SIM))


VARS: Final = {Var("i"): 4, Var("j"): 6, Var("k"): 1}
"""Variables of `index_exprs` and their extents."""


@cache
def index_exprs() -> st.SearchStrategy[Expr]:
    """Index arithmetic over VARS, with everything that simplification knows."""
    variables: st.SearchStrategy[Expr] = st.sampled_from(list(VARS))
    numbers = st.integers(-8, 20).map(lambda value: Const(value, INDEX))
    divisors = st.integers(1, 9).map(lambda value: Const(value, INDEX))

    def larger(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        comparisons = st.builds(
            lambda kind, left, right: kind(left, right),
            st.sampled_from([Lt, Le, Eq, Ne]),
            inner,
            inner,
        )
        return st.one_of(
            st.builds(Add, inner, inner),
            st.builds(Sub, inner, inner),
            st.builds(Mul, inner, numbers),
            st.builds(Mul, inner, inner),
            st.builds(FloorDiv, inner, divisors),
            st.builds(FloorMod, inner, divisors),
            st.builds(Min, inner, inner),
            st.builds(Max, inner, inner),
            st.builds(Select, comparisons, inner, inner),
        )

    return st.recursive(st.one_of(variables, numbers), larger, max_leaves=10)
