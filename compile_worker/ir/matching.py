"""Whether an expression is of the form of another one, in which elements stand for anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from compile_worker.ir.expr import (
    Add,
    And,
    Binary,
    Call,
    Cast,
    Eq,
    Expr,
    Load,
    Logical,
    Max,
    Min,
    Mul,
    Ne,
    Or,
    Select,
)

_EITHER_WAY: Final = (Add, Mul, And, Or, Eq, Ne)
"""Operators whose operands change places without a change of the result; of integers Min and Max
as well, which of floats tell a NaN's place."""

Bound: TypeAlias = dict[Load, Expr]


def _anything(operand: Load, expr: Expr) -> bool:
    del operand, expr
    return True


def matched(
    pattern: Expr,
    expr: Expr,
    operands: Sequence[Load],
    bound: Bound,
    may_be: Callable[[Load, Expr], bool] = _anything,
) -> Bound | None:
    """What the operands of a pattern stand for if an expression is of its form; else None.

    Args:
        bound: what is known of them already.
        may_be: whether an operand can stand for an expression of its type.
    """
    if isinstance(pattern, Load) and pattern in operands:
        if expr.dtype is not pattern.dtype or bound.get(pattern, expr) is not expr:
            return None
        return {**bound, pattern: expr} if may_be(pattern, expr) else None
    if type(pattern) is not type(expr) or pattern.dtype is not expr.dtype:
        return None
    match pattern, expr:
        case (Binary() | Logical(), Binary() | Logical()):
            pairs = [(expr.left, expr.right)]
            swaps = _EITHER_WAY if pattern.left.dtype.is_float else (*_EITHER_WAY, Min, Max)
            if isinstance(pattern, swaps):
                pairs.append((expr.right, expr.left))
            wanted = pattern.left, pattern.right
            found = (_all_matched(wanted, pair, operands, bound, may_be) for pair in pairs)
            return next((each for each in found if each is not None), None)
        case Cast(value=inner), Cast(value=value):
            return matched(inner, value, operands, bound, may_be)
        case Select(a, b, c), Select(x, y, z):
            return _all_matched((a, b, c), (x, y, z), operands, bound, may_be)
        case Call(name, args), Call(other, values) if name == other and len(args) == len(values):
            return _all_matched(args, values, operands, bound, may_be)
        case _:
            return bound if pattern is expr else None


def _all_matched(
    patterns: Sequence[Expr],
    exprs: Sequence[Expr],
    operands: Sequence[Load],
    bound: Bound,
    may_be: Callable[[Load, Expr], bool],
) -> Bound | None:
    found: Bound | None = bound
    for pattern, expr in zip(patterns, exprs, strict=True):
        if found is not None:
            found = matched(pattern, expr, operands, found, may_be)
    return found
