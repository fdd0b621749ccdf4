"""Operators for `tilefarm bench cpu`: those that ResNet-18 has, in int8, and around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import AttrValue, TensorSpec, Workload

from driver.benchmarks.cpu_qlinear import QLINEAR
from driver.benchmarks.cpu_reals import REALS

_LANES: Final = 16
_FLOAT: Final = DType.FLOAT32

Shape = tuple[DType, tuple[int, ...]]


def _blocked(channels: int, *space: int) -> Shape:
    return (DType.INT8, (1, -(-channels // _LANES), *space, 1, _LANES))


def _workload(
    operator: str, inputs: Mapping[str, Shape], out: Shape, **attrs: AttrValue
) -> Workload:
    specs = tuple(TensorSpec(name, shape, dtype) for name, (dtype, shape) in inputs.items())
    output = TensorSpec("out", out[1], out[0])
    return Workload(operator, specs, (output,), tuple(attrs.items()))


def _convolution() -> Workload:
    lanes = (DType.INT32, (4, 1, _LANES))
    return _workload(
        "conv2d",
        {
            "data": _blocked(64, 56, 56),
            "weight": (DType.INT8, (4, 4, 3, 3, _LANES, _LANES)),
            "shift": lanes,
        },
        _blocked(64, 56, 56),
        stride=(1, 1),
        pad=(1, 1, 1, 1),
        dilation=(1, 1),
        lo=-128,
        hi=127,
    )


def _dense() -> Workload:
    weight = (DType.INT8, (63, 32, _LANES, _LANES))
    shift = (DType.INT32, (63, 1, _LANES))
    inputs = {"data": _blocked(512), "weight": weight, "shift": shift}
    return _workload("dense", inputs, _blocked(1000), lo=-128, hi=127)


OPERATORS: Final[Mapping[str, Callable[[], Workload]]] = {
    "quantize_windows": lambda: _workload(
        "quantize_windows",
        {"x": (_FLOAT, (1, 3, 224, 224))},
        _blocked(147, 112, 112),
        inv_scale=48.0,
        kernel=(7, 7),
        stride=(2, 2),
        pad=(3, 3, 3, 3),
        dilation=(1, 1),
    ),
    "quantize": lambda: _workload(
        "quantize", {"x": (_FLOAT, (1, 3, 32, 32))}, _blocked(3, 32, 32), inv_scale=48.0
    ),
    "quantize_wide": lambda: _workload(
        "quantize", {"x": (_FLOAT, (1, 64, 56, 56))}, _blocked(64, 56, 56), inv_scale=48.0
    ),
    "dequantize": lambda: _workload(
        "dequantize", {"x": _blocked(64, 56, 56)}, (_FLOAT, (1, 64, 56, 56)), scale=0.1
    ),
    "softmax": lambda: _workload(
        "softmax", {"x": _blocked(1000), "table": (_FLOAT, (256,))}, (_FLOAT, (1, 1000))
    ),
    "relayout": lambda: _workload(
        "relayout",
        {"x": _blocked(64, 28, 28)},
        _blocked(64 * 28 * 28),
        logical_in=(1, 64, 28, 28),
        logical_out=(1, 64 * 28 * 28),
    ),
    "add": lambda: _workload(
        "add",
        {"a": _blocked(64, 56, 56), "b": _blocked(64, 56, 56)},
        _blocked(64, 56, 56),
        mul_a=77,
        mul_b=31,
        shift=7,
        lo=0,
        hi=127,
    ),
    "affine": lambda: _workload(
        "affine",
        {
            "x": _blocked(64, 56, 56),
            **dict.fromkeys(("mul", "add", "shift"), (DType.INT32, (4, 1, _LANES))),
        },
        _blocked(64, 56, 56),
        lo=-128,
        hi=127,
    ),
    "max_pool2d": lambda: _workload(
        "max_pool2d",
        {"x": _blocked(64, 112, 112)},
        _blocked(64, 56, 56),
        kernel=(3, 3),
        stride=(2, 2),
        pad=(1, 1, 1, 1),
    ),
    "avg_pool2d": lambda: _workload(
        "avg_pool2d",
        {"x": _blocked(512, 7, 7), "mul": (DType.INT32, (1, 1))},
        _blocked(512, 1, 1),
        kernel=(7, 7),
        stride=(1, 1),
        pad=(0, 0, 0, 0),
        shift=15,
        lo=-128,
        hi=127,
    ),
    "lookup": lambda: _workload(
        "lookup", {"x": _blocked(64, 56, 56), "table": (DType.INT8, (256,))}, _blocked(64, 56, 56)
    ),
    "product": lambda: _workload(
        "product",
        {
            "a": _blocked(64, 56, 56),
            "b": _blocked(64, 56, 56),
            "table": (DType.INT32, (256,)),
        },
        _blocked(64, 56, 56),
        shift=20,
        lo=-128,
        hi=127,
    ),
    "as_strided": lambda: _workload(
        "as_strided",
        {"x": (_FLOAT, (1, 4096))},
        (_FLOAT, (1, 64, 64)),
        strides=(1, 64),
        offset=0,
    ),
    "gather": lambda: _workload(
        "gather",
        {
            "x": (DType.INT8, (1, 64 * 28 * 28)),
            "index": (DType.INT32, (64 * 56 * 56,)),
        },
        (DType.INT8, (1, 64 * 56 * 56)),
    ),
    "border": lambda: _workload("border", {}, _blocked(64, 58, 58), border=(1, 1, 1, 1), fill=-128),
    "conv2d": _convolution,
    "dense": _dense,
    **QLINEAR,
    **REALS,
}
"""Operators that the processor runs or may be asked to, by name; most are of ResNet-18."""
