"""Between plain and blocked layouts: quantize, dequantize, relayout.

A logical tensor [N, C, ...] is stored as [N/b, C/c, ..., b, c]; logical channel k is lane k % c of
block k // c. Channels that fill up the last block are zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import (
    INDEX,
    Call,
    Cast,
    Const,
    Expr,
    Lt,
    Max,
    Min,
    Var,
)
from compile_worker.ir.simplify import simplify
from compile_worker.te.operators.elementwise import data_axes, plain_axes
from compile_worker.te.operators.window import guarded
from compile_worker.te.tensor import Tensor, compute


def quantize(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone. x [N, C, ...] is float32."""
    (x,) = inputs
    spec = workload.outputs[0]

    def element(*at: Var) -> Expr:
        logical = logical_index(at, spec.shape)
        value = quantized(x[tuple(logical)], workload)
        return guarded(present(logical, x.shape, spec.shape), value, 0)

    return [compute(spec.name, data_axes(spec.shape), element, scope="dram")]


def dequantize(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone, float32 [N, C, ...]."""
    (x,) = inputs
    spec = workload.outputs[0]
    factor = Const(workload.attr_float("scale"), DType.FLOAT32)

    def element(*at: Var) -> Expr:
        value = Cast(DType.FLOAT32, x[blocked_index(at, x.shape)]) * factor
        return value + Const(workload.offset, DType.FLOAT32) if workload.offset else value

    return [compute(spec.name, plain_axes(spec.shape), element, scope="dram")]


def relayout(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone: the same elements in row-major logical order, in another logical shape."""
    (x,) = inputs
    spec = workload.outputs[0]
    before, after = workload.attr_ints("logical_in"), workload.attr_ints("logical_out")
    if math.prod(before) != math.prod(after):
        raise ValueError(f"relayout of {before} to {after}, which is not as many elements")

    def element(*at: Var) -> Expr:
        logical = logical_index(at, spec.shape)
        extents = dict(zip(at, spec.shape, strict=True))
        source = unravelled(ravelled(logical, after), before)
        place = tuple(simplify(each, extents) for each in blocked_index(source, x.shape))
        nothing = 0.0 if x.dtype.is_float else 0
        return guarded(present(logical, after, spec.shape), x[place], nothing)

    return [compute(spec.name, data_axes(spec.shape), element, scope="dram")]


def logical_index(at: Sequence[Expr], blocked: tuple[int, ...]) -> list[Expr]:
    """Logical coordinates [n, c, ...] of an element of a blocked tensor."""
    n, c, *space, b, o = at
    batch, lanes = blocked[-2:]
    return [n * batch + b if batch > 1 else n, c * lanes + o, *space]


def blocked_index(logical: Sequence[Expr], blocked: tuple[int, ...]) -> tuple[Expr, ...]:
    """Coordinates in a blocked tensor of a logical element."""
    n, c, *space = logical
    batch, lanes = blocked[-2:]
    zero = Const(0, INDEX)
    outer, inner = (n // batch, n % batch) if batch > 1 else (n, zero)
    return (outer, c // lanes, *space, inner, c % lanes)


def ravelled(index: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """The row-major position of an element."""
    position = index[0]
    for each, extent in zip(index[1:], shape[1:], strict=True):
        position = position * extent + each
    return position


def unravelled(position: Expr, shape: Sequence[int]) -> list[Expr]:
    """The coordinates of the element at a row-major position, which must be one of the shape's."""
    leading = next((axis for axis, extent in enumerate(shape) if extent > 1), 0)
    found: list[Expr] = []
    for extent in reversed(shape[leading + 1 :]):
        found.append(position % extent)
        position = position // extent
    return [*[Const(0, INDEX)] * leading, position, *reversed(found)]


def present(logical: Sequence[Expr], shape: Sequence[int], blocked: tuple[int, ...]) -> list[Expr]:
    """Conditions for a blocked tensor's element to exist in the logical shape."""
    batch, lanes = blocked[-2:]
    room = (blocked[0] * batch, blocked[1] * lanes)
    return [
        Lt(at, Const(extent, INDEX))
        for at, extent, most in zip(logical, shape, room, strict=False)
        if extent < most
    ]


def quantized(value: Expr, workload: Workload) -> Expr:
    """A float32 as int8: scaled, offset, clipped, and rounded, halves to even."""
    scaled = value * Const(workload.attr_float("inv_scale"), DType.FLOAT32)
    if workload.offset:
        scaled = scaled + Const(workload.offset, DType.FLOAT32)
    clipped = Min(Max(scaled, Const(-128.0, value.dtype)), Const(127.0, value.dtype))
    return Cast(DType.INT8, Call("round_even", (clipped,), value.dtype))
