"""ONNX's quantized operators for `tilefarm bench cpu`, in sizes of ResNet-18 and of BERT base."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import AttrValue, TensorSpec, Workload

_LANES: Final = 16
_BYTE: Final = DType.UINT8
_FLOAT: Final = DType.FLOAT32
_HEADS: Final = 12
_HEAD: Final = 64
_TOKENS: Final = 128

Typed = tuple[DType, tuple[int, ...]]


def _workload(
    operator: str, inputs: Mapping[str, Typed], out: Typed, **attrs: AttrValue
) -> Workload:
    specs = tuple(TensorSpec(name, shape, dtype) for name, (dtype, shape) in inputs.items())
    return Workload(operator, specs, (TensorSpec("out", out[1], out[0]),), tuple(attrs.items()))


def _blocked(channels: int, *space: int) -> Typed:
    return (_BYTE, (1, channels // _LANES, *space, 1, _LANES))


_GRID: Final = {"zero": 128, "lo": 0, "hi": 255}


def _product(inner: int, columns: int) -> Workload:
    """Of the heads of an attention layer."""
    a, b = (_HEADS, inner, _TOKENS), (_HEADS, inner, columns)
    inputs = {"a": (_BYTE, a), "b": (_BYTE, b)}
    zeros = {"a_zero": 117, "b_zero": 131}
    out = (_BYTE, (_HEADS, _TOKENS, columns))
    return _workload("qlinear_matmul", inputs, out, scale=0.001, **zeros, **_GRID)


def _transposed() -> Workload:
    channels = (4, _LANES)
    return _workload(
        "qlinear_conv2d_transpose",
        {
            "data": _blocked(64, 14, 14),
            "weight": (DType.INT8, (4, 2, 2, 4, 2, 2, 4, _LANES, 4)),
            "bias": (DType.INT32, channels),
            "scale": (_FLOAT, channels),
        },
        _blocked(64, 28, 28),
        stride=(2, 2),
        pad=(1, 1, 0, 0),
        fill=117,
        **_GRID,
    )


def _mean() -> Workload:
    return _workload(
        "qlinear_avg_pool2d",
        {"x": _blocked(512, 7, 7), "scale": (_FLOAT, (1, 1))},
        _blocked(512, 1, 1),
        kernel=(7, 7),
        stride=(1, 1),
        pad=(0, 0, 0, 0),
        x_zero=117,
        **_GRID,
    )


def _sum() -> Workload:
    grids = {"a_scale": 0.02, "a_zero": 117, "b_scale": 0.03, "b_zero": 120, "scale": 0.04}
    image = _blocked(64, 56, 56)
    return _workload(
        "qlinear_zip", {"a": image, "b": image}, image, function="add", **grids, **_GRID
    )


def _rows() -> Workload:
    logical = (1, 64, 56, 56)
    return _workload(
        "relayout",
        {"x": _blocked(64, 56, 56)},
        (_BYTE, (*logical, 1, 1)),
        logical_in=logical,
        logical_out=logical,
    )


QLINEAR: Final[Mapping[str, Callable[[], Workload]]] = {
    "qlinear_matmul_scores": lambda: _product(_HEAD, _TOKENS),
    "qlinear_matmul_values": lambda: _product(_TOKENS, _HEAD),
    "qlinear_conv2d_transpose": _transposed,
    "qlinear_avg_pool2d": _mean,
    "qlinear_zip": _sum,
    "quantize_linear": lambda: _workload(
        "quantize_linear",
        {"x": (_FLOAT, (1, 64, 56, 56))},
        _blocked(64, 56, 56),
        scale=0.02,
        zero=117,
    ),
    "dequantize_linear": lambda: _workload(
        "dequantize_linear",
        {"x": _blocked(64, 56, 56)},
        (_FLOAT, (1, 64, 56, 56)),
        scale=0.02,
        zero=117,
    ),
    "dynamic_grid": lambda: _workload(
        "dynamic_grid", {"x": (_FLOAT, (1, _HEADS * _HEAD * _TOKENS))}, (_FLOAT, (1, 2))
    ),
    "dynamic_quantize_linear": lambda: _workload(
        "dynamic_quantize_linear",
        {"x": (_FLOAT, (1, _HEADS * _HEAD, _TOKENS)), "grid": (_FLOAT, (1, 2))},
        _blocked(_HEADS * _HEAD, _TOKENS),
    ),
    "dynamic_bias": lambda: _workload(
        "dynamic_bias",
        {
            "grid": (_FLOAT, (1, 2)),
            "taps": (DType.INT32, (_HEADS * _HEAD // _LANES, _LANES)),
            "bias": (DType.INT32, (_HEADS * _HEAD // _LANES, _LANES)),
        },
        (DType.INT32, (_HEADS * _HEAD // _LANES, _LANES)),
    ),
    "relayout_to_rows": _rows,
}
"""Operators by name; those of heads are of 12 heads of 64 channels, and 128 tokens."""
