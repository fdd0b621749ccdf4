"""The larger and the smaller of two floats, NaN where one is: one instruction with a literal.

`Max` and `Min` are what processors have, which give the second operand where one is NaN.
"""

from __future__ import annotations

from tilefarm.dtype import DType

from compile_worker.ir.expr import Call, Const, Expr, Max, Min


def maximum(a: Expr, b: Expr) -> Expr:
    """The larger of two float32, or NaN."""
    return _extreme("maximum", Max, a, b)


def minimum(a: Expr, b: Expr) -> Expr:
    """The smaller of two float32, or NaN."""
    return _extreme("minimum", Min, a, b)


def _extreme(name: str, of_numbers: type[Max | Min], a: Expr, b: Expr) -> Expr:
    """A literal comes first: it is never NaN, and the other stays where it is."""
    if isinstance(a, Const):
        return of_numbers(a, b)
    if isinstance(b, Const):
        return of_numbers(b, a)
    return Call(name, (a, b), DType.FLOAT32)
