"""Small workloads of every operator, their inputs and nests, and strategies that make more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from tilefarm.dtype import DType
from tilefarm.target import TARGETS
from tilefarm.workload import AttrValue, TensorSpec, Workload

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
    lo: int = -128,
    hi: int = 127,
) -> Workload:
    """A convolution; `ci`, `co` count blocks of channels, `pad` is top, left, bottom, right."""
    top, left, bottom, right = pad
    out_h = (height + top + bottom - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    out_w = (width + left + right - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
    return workload(
        "conv2d",
        {
            "data": (DType.INT8, (1, ci, height, width, 1, LANES)),
            "weight": (DType.INT8, (co, ci, *kernel, LANES, LANES)),
            "bias": (DType.INT32, (co, 1, LANES)),
            "shift": (DType.INT32, (co, 1, LANES)),
        },
        (DType.INT8, (1, co, out_h, out_w, 1, LANES)),
        stride=stride,
        pad=pad,
        dilation=dilation,
        lo=lo,
        hi=hi,
    )


def dense(ci: int = 2, co: int = 1, rows: int = 1, lo: int = -128, hi: int = 127) -> Workload:
    """A fully connected layer; `ci` and `co` count blocks of 16 channels."""
    return workload(
        "dense",
        {
            "data": (DType.INT8, (rows, ci, 1, LANES)),
            "weight": (DType.INT8, (co, ci, LANES, LANES)),
            "bias": (DType.INT32, (co, 1, LANES)),
            "shift": (DType.INT32, (co, 1, LANES)),
        },
        (DType.INT8, (rows, co, 1, LANES)),
        lo=lo,
        hi=hi,
    )


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


_CHANNELS: Final = (DType.INT32, (2, 1, LANES))
_BLOCKED: Final = (DType.INT8, (1, 2, 3, 5, 1, LANES))

EXAMPLES: Final[Mapping[str, Workload]] = {
    "conv2d": conv2d(co=2, height=5, width=4),
    "conv2d_strided": conv2d(2, 1, 7, 6, stride=(2, 1), pad=(0, 1, 2, 0), lo=0, hi=100),
    "conv2d_1x1": conv2d(2, 2, kernel=(1, 1), pad=(0, 0, 0, 0)),
    "conv2d_dilated": conv2d(1, 1, 7, 7, dilation=(2, 3), pad=(2, 3, 2, 3)),
    "dense": dense(3, 2),
    "quantize": workload(
        "quantize",
        {"x": (DType.FLOAT32, (1, 19, 3, 2))},
        (DType.INT8, (1, 2, 3, 2, 1, LANES)),
        inv_scale=12.5,
    ),
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
}
"""A small workload for every operator and every shape of its nest."""


def nest(name: str) -> Func:
    """The nest of an example."""
    return nest_of(EXAMPLES[name], SIM)


def inputs_of(work: Workload, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Arrays for a workload's inputs that exercise its arithmetic; shifts are 0 to 10."""
    rng = np.random.default_rng(seed)
    return {spec.name: _array(spec, rng) for spec in work.inputs}


def _array(spec: TensorSpec, rng: np.random.Generator) -> npt.NDArray[Any]:
    if spec.name == "table":
        return np.array([2.0 ** (-step / 16) for step in range(256)], np.float32)
    if spec.dtype.is_float:
        return rng.normal(0, 6, spec.shape).astype(np.float32)
    if spec.name == "shift":
        return rng.integers(0, 11, spec.shape).astype(np.int32)
    low, high = (-128, 127) if spec.dtype is DType.INT8 else (-3000, 3000)
    return rng.integers(low, high, spec.shape, endpoint=True).astype(spec.dtype.numpy)


@st.composite
def convolutions(draw: st.DrawFn) -> Workload:
    """Small convolutions: any kernel up to 3x3, strides 1 and 2, lopsided pads."""
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    pads = st.integers(0, 2)
    return conv2d(
        ci=draw(st.integers(1, 2)),
        co=draw(st.integers(1, 2)),
        height=draw(st.integers(kernel[0], 6)),
        width=draw(st.integers(kernel[1], 6)),
        kernel=kernel,
        stride=(draw(st.integers(1, 2)), draw(st.integers(1, 2))),
        pad=(draw(pads), draw(pads), draw(pads), draw(pads)),
        lo=draw(st.sampled_from([-128, 0])),
    )


@st.composite
def denses(draw: st.DrawFn) -> Workload:
    """Small fully connected layers."""
    return dense(draw(st.integers(1, 4)), draw(st.integers(1, 3)), lo=draw(st.integers(-128, 0)))


def workloads() -> st.SearchStrategy[Workload]:
    """Any operator: generated where schedules matter, the examples otherwise."""
    return st.one_of(convolutions(), denses(), st.sampled_from(list(EXAMPLES.values())))


def nests() -> st.SearchStrategy[Func]:
    """The nest of any operator."""
    return workloads().map(lambda work: nest_of(work, SIM))


VARS: Final = {Var("i"): 4, Var("j"): 6, Var("k"): 1}
"""Variables of `index_exprs` and their extents."""


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
