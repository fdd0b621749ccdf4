"""Interval analysis: the least and the greatest value that an expression can take.

Sound for every type: what might wrap, and what is not understood, has its type's whole range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from tilefarm.dtype import DType

from compile_worker.ir.affine import linear
from compile_worker.ir.expr import (
    INDEX,
    Add,
    And,
    Cast,
    Const,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Le,
    Logical,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Or,
    Select,
    Shr,
    Sub,
    Var,
)
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import For
from compile_worker.ir.visit import find

Extents = Mapping[Var, int]
"""How many values a variable takes, from 0 on. A variable that is not listed may be anything."""


class Interval(NamedTuple):
    """All integers from `low` to `high`, both included."""

    low: int
    high: int

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and self.low <= value <= self.high

    def within(self, other: Interval) -> bool:
        return other.low <= self.low and self.high <= other.high


RANGES: Final[Mapping[DType, Interval]] = {
    DType.BOOL: Interval(0, 1),
    DType.INT8: Interval(-(1 << 7), (1 << 7) - 1),
    DType.UINT8: Interval(0, (1 << 8) - 1),
    DType.INT16: Interval(-(1 << 15), (1 << 15) - 1),
    DType.INT32: Interval(-(1 << 31), (1 << 31) - 1),
    DType.INT64: Interval(-(1 << 63), (1 << 63) - 1),
}
"""Every value of an integer type."""

_ANYTHING: Final = RANGES[INDEX]


def extents_of(node: Node) -> dict[Var, int]:
    """The extent of every loop at or below `node`."""
    return {loop.var: loop.extent for loop in find(node, For)}


def interval(expr: Expr, extents: Extents) -> Interval:
    """Bounds of an integer or truth-valued expression.

    Raises:
        TypeError: the expression is a float.
    """
    if expr.dtype.is_float:
        raise TypeError(f"no interval of a {expr.dtype}")
    found = _bound(expr, extents)
    whole = RANGES[expr.dtype]
    return found if found.within(whole) else whole


def truth(condition: Expr, extents: Extents) -> bool | None:
    """Whether a condition always holds (True), never (False), or depends (None)."""
    low, high = interval(condition, extents)
    return bool(low) if low == high else None


def _bound(expr: Expr, extents: Extents) -> Interval:
    match expr:
        case Const(value=value):
            return Interval(int(value), int(value))
        case Var():
            return Interval(0, extents[expr] - 1) if expr in extents else _ANYTHING
        case Add() | Sub() | Mul():
            return _of_sum(expr, extents)
        case FloorDiv(left, right) | FloorMod(left, right):
            return _of_division(expr, interval(left, extents), interval(right, extents))
        case Min(left, right):
            a, b = interval(left, extents), interval(right, extents)
            return Interval(min(a.low, b.low), min(a.high, b.high))
        case Max(left, right):
            a, b = interval(left, extents), interval(right, extents)
            return Interval(max(a.low, b.low), max(a.high, b.high))
        case Shr(left, right):
            return _of_shift(interval(left, extents), interval(right, extents))
        case Select(condition, then, otherwise):
            return _of_select(truth(condition, extents), then, otherwise, extents)
        case Cast(value=value) if not value.dtype.is_float:
            return interval(value, extents)
        case And() | Or() | Logical():
            return _of_logical(expr, extents)
        case _:
            return RANGES[expr.dtype]


def _of_sum(expr: Expr, extents: Extents) -> Interval:
    """A sum of terms; an index's equal terms are collected first, which is what makes it tight."""
    if expr.dtype is not INDEX:
        return _of_wrapping(expr, extents)
    terms, constant = linear(expr)
    low = high = constant
    for term, factor in terms.items():
        if type(term) is Mul:
            a, b = _product(interval(term.left, extents), interval(term.right, extents))
        else:
            a, b = interval(term, extents)
        low += min(a * factor, b * factor)
        high += max(a * factor, b * factor)
    return Interval(low, high)


def _of_wrapping(expr: Expr, extents: Extents) -> Interval:
    assert isinstance(expr, Add | Sub | Mul)
    a, b = interval(expr.left, extents), interval(expr.right, extents)
    if type(expr) is Add:
        return Interval(a.low + b.low, a.high + b.high)
    if type(expr) is Sub:
        return Interval(a.low - b.high, a.high - b.low)
    return _product(a, b)


def _product(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return Interval(min(corners), max(corners))


def _of_division(expr: FloorDiv | FloorMod, left: Interval, right: Interval) -> Interval:
    if right.low != right.high or right.low <= 0:
        return RANGES[expr.dtype]
    divisor = right.low
    first, last = left.low // divisor, left.high // divisor
    if type(expr) is FloorDiv:
        return Interval(first, last)
    if first == last:
        return Interval(left.low % divisor, left.high % divisor)
    return Interval(0, divisor - 1)


def _of_shift(left: Interval, right: Interval) -> Interval:
    if right.low < 0 or right.high > 63:
        return Interval(min(left.low, -1), max(left.high, 0))
    corners = [value >> amount for value in left for amount in right]
    return Interval(min(corners), max(corners))


def _of_select(known: bool | None, then: Expr, otherwise: Expr, extents: Extents) -> Interval:
    if known is not None:
        return interval(then if known else otherwise, extents)
    a, b = interval(then, extents), interval(otherwise, extents)
    return Interval(min(a.low, b.low), max(a.high, b.high))


def _difference(expr: Logical, extents: Extents) -> Interval:
    """Bounds of left - right, as mathematical integers."""
    if expr.left.dtype is INDEX:
        return _of_sum(Sub(expr.left, expr.right), extents)
    a, b = interval(expr.left, extents), interval(expr.right, extents)
    return Interval(a.low - b.high, a.high - b.low)


_COMPARISONS: Final[Mapping[type[Expr], Callable[[Interval], bool | None]]] = {
    Lt: lambda d: True if d.high < 0 else False if d.low >= 0 else None,
    Le: lambda d: True if d.high <= 0 else False if d.low > 0 else None,
    Eq: lambda d: True if d == (0, 0) else False if 0 not in d else None,
    Ne: lambda d: False if d == (0, 0) else True if 0 not in d else None,
}
"""What the bounds of left - right say about a comparison."""


def _of_logical(expr: Logical | And | Or, extents: Extents) -> Interval:
    if type(expr) in (And, Or):
        a, b = interval(expr.left, extents), interval(expr.right, extents)
        if type(expr) is And:
            return Interval(min(a.low, b.low), min(a.high, b.high))
        return Interval(max(a.low, b.low), max(a.high, b.high))
    if expr.left.dtype.is_float:
        return RANGES[DType.BOOL]
    known = _COMPARISONS[type(expr)](_difference(expr, extents))
    return RANGES[DType.BOOL] if known is None else Interval(int(known), int(known))
