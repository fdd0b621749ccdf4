"""Integers that are no quantized reals: token ids, masks, positions, and arithmetic with them.

The graph has them as float32, in which they are exact up to 2^24. Those of 8 and 16 bits wrap
around, as their type does; wider ones are taken to be small enough never to do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from driver.network.frontend.call import Lowered, OnnxCall, RefusedError, Scope
from driver.network.graph.grid import BOUNDS, Grid
from driver.network.graph.ir import Unary

_TRUE_OR_FALSE: Final = frozenset(
    {"And", "Equal", "Greater", "GreaterOrEqual", "IsNaN", "Less", "LessOrEqual", "Not", "Or"}
    | {"Xor"}
)
_GROWING: Final = frozenset(
    {"Abs", "Add", "Mul", "Neg", "Pow", "ReduceL1", "ReduceProd", "ReduceSum"}
    | {"ReduceSumSquare", "Sub", "Sum"}
)
"""Operators whose results may lie beyond the type of their operands."""
_TRUNCATED: Final = frozenset({"Div", "Pow"})
"""Operators on integers that leave a fraction out."""

ARITHMETIC: Final = (
    _TRUE_OR_FALSE
    | _GROWING
    | _TRUNCATED
    | {"CastLike", "Clip", "Max", "Min", "Mod", "ReduceMax"}
    | {"ReduceMin", "Relu", "Scatter", "ScatterElements", "ScatterND", "Sign", "Where"}
)
"""Operators that mean on the integers what they mean on these as reals."""


def result_grid(call: OnnxCall, scope: Scope) -> Grid | None:
    """What the result of one of `ARITHMETIC` stands for; None for reals."""
    if call.operator in _TRUE_OR_FALSE:
        return Grid(1.0, 0, "bool")
    if call.operator == "CastLike":
        return grid_of(call.inputs[1], scope)
    return grid_of(call.inputs[1 if call.operator == "Where" else 0], scope)


def grid_of(name: str, scope: Scope) -> Grid | None:
    """What a tensor of integers stands for, a constant for itself; None for reals."""
    if not scope.is_constant(name):
        return scope.grids.get(name)
    dtype = scope.constants[name].dtype
    return Grid(1.0, 0, dtype.name) if dtype.name in BOUNDS else None


def as_integers(call: OnnxCall, lowered: Lowered, scope: Scope) -> Lowered:
    """What a rule made of integers as reals, as integers: no fraction, within their type.

    Raises:
        RefusedError: they may be negative, and their type is a wide one without a sign.
    """
    grid = result_grid(call, scope) if call.operator in ARITHMETIC else None
    if grid is None:
        return lowered
    chain = lowered.chain
    if call.operator in _TRUNCATED:
        chain = (*chain, Unary(function="trunc"))
    if call.operator in _GROWING:
        chain = (*chain, *wrapped(grid.dtype, may_be_negative=call.operator in ("Neg", "Sub")))
    return replace(lowered, chain=chain)


def wrapped(dtype: str, *, may_be_negative: bool) -> tuple[Unary, ...]:
    """What brings whole numbers into an integer type.

    Raises:
        RefusedError: they may be negative, and the type is a wide one without a sign.
    """
    lowest, highest = BOUNDS[dtype]
    span = highest - lowest + 1
    if dtype != "bool" and span <= 1 << 16:
        return (Unary(function="wrap", parameters=(float(lowest), float(span))),)
    if may_be_negative and dtype in ("uint32", "uint64"):
        raise RefusedError(f"may be negative, which {dtype} cannot; cast to int64 or float before")
    return ()


def truncated(dtype: str) -> tuple[Unary, ...]:
    """What makes integers of reals: the fraction is left out, and what is outside wraps around."""
    return (Unary(function="trunc"), *wrapped(dtype, may_be_negative=False))
