"""Values of expressions, for one iteration or for a whole block of them at once.

Loop variables are integers; give arrays that broadcast against one another instead, and the value
is an array over all their combinations. Integers wrap at their width, as on the machine; indices,
which never come near it, are plain numbers where they are not arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from tilefarm.errors import TilefarmError
from tilefarm.real import FUNCTIONS
from tilefarm.real_arrays import applied, combined

from compile_worker.ir.affine import as_affine
from compile_worker.ir.expr import (
    INDEX,
    Add,
    And,
    Binary,
    Buffer,
    Call,
    Cast,
    Const,
    Div,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Le,
    Load,
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
from compile_worker.ir.intrinsics import intrinsic_of_user
from compile_worker.ir.printer import show

Array: TypeAlias = npt.NDArray[Any]
Memory: TypeAlias = Mapping[Buffer, Array]
Value: TypeAlias = Array | int
"""An index or a truth value may be a plain number; everything else is an array, maybe of rank 0."""

Values: TypeAlias = Mapping[Var, Value]
"""The value of every loop variable in scope."""


_OF_TWO: Final = (Binary, Logical)


class InterpretError(TilefarmError):
    """The program does something that has no meaning: where, and what."""


def _function(name: str, x: Array, *parameters: Array) -> Array:
    return applied(name, x, [float(each) for each in parameters])


INTRINSICS: Final[Mapping[str, Callable[..., Array]]] = {
    "round_even": np.rint,
    "maximum": partial(combined, "max"),
    "minimum": partial(combined, "min"),
    **{name: partial(_function, name) for name in FUNCTIONS},
}
"""Intrinsic name -> its meaning: those of `tilefarm.real.FUNCTIONS`, whose parameters are literals.

round_even gives the nearest integer, halves to the even one; maximum and minimum are of two floats,
and NaN where one of them is, which Max and Min are not.
"""


def _smaller(left: Value, right: Value) -> Array:
    """The first where it is less, which what is no number never is."""
    return np.where(np.less(left, right), left, right)


def _larger(left: Value, right: Value) -> Array:
    return np.where(np.greater(left, right), left, right)


OPERATORS: Final[Mapping[type[Expr], Callable[[Value, Value], Array]]] = {
    Add: np.add,
    Sub: np.subtract,
    Mul: np.multiply,
    Div: np.true_divide,
    FloorDiv: np.floor_divide,
    FloorMod: np.remainder,
    Min: _smaller,
    Max: _larger,
    Shr: np.right_shift,
    Lt: np.less,
    Le: np.less_equal,
    Eq: np.equal,
    Ne: np.not_equal,
    And: np.logical_and,
    Or: np.logical_or,
}

_OF_NUMBERS: Final[Mapping[type[Expr], Callable[[int, int], int]]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
    FloorDiv: operator.floordiv,
    FloorMod: operator.mod,
    Min: min,
    Max: max,
    Shr: operator.rshift,
    Lt: operator.lt,
    Le: operator.le,
    Eq: operator.eq,
    Ne: operator.ne,
    And: operator.and_,
    Or: operator.or_,
}


def evaluate(expr: Expr, values: Values, memory: Memory, where: Array | None = None) -> Value:
    """The value of `expr`; elements where `where` is false may be anything, and never fail.

    Raises:
        InterpretError: an element outside a buffer, a division by zero, a shift by more than the
            width, or a name that nothing has bound.
    """
    if isinstance(expr, Var):  # what is asked most is asked first; a match takes twice as long
        return _value_of(expr, values)
    if isinstance(expr, Const):
        whole = expr.dtype is INDEX
        return int(expr.value) if whole else np.asarray(expr.value, expr.dtype.value)
    if isinstance(expr, _OF_TWO):
        left = evaluate(expr.left, values, memory, where)
        right = evaluate(expr.right, values, memory, where)
        return _operate(expr, left, right, where)
    match expr:
        case Load(buffer, index):
            found: Array = memory_of(buffer, memory)[place(buffer, index, values, memory, where)]
            return found
        case Cast(dtype, value):
            return np.asarray(evaluate(value, values, memory, where)).astype(dtype.value)
        case Select(condition, then, otherwise):
            return _select(condition, then, otherwise, values, memory, where)
        case Call(name, args):
            if (mine := intrinsic_of_user(name)) is not None:
                return evaluate(mine.inlined(args), values, memory, where)
            if name not in INTRINSICS:
                raise InterpretError(f"unknown intrinsic {name}")
            return INTRINSICS[name](*(evaluate(arg, values, memory, where) for arg in args))
        case _:
            raise InterpretError(f"no meaning for {type(expr).__name__}")


def _value_of(var: Var, values: Values) -> Value:
    if var not in values:
        raise InterpretError(f"loop variable {var.name} has no value here")
    return values[var]


def coordinate(expr: Expr, values: Values, memory: Memory, where: Array | None = None) -> Value:
    """As `evaluate`, for an index: nearly every one is a sum of products, which takes no walk."""
    affine = as_affine(expr)
    if affine is None:
        return evaluate(expr, values, memory, where)
    total: Value = affine.constant
    for var, factor in affine.terms.items():
        total = total + factor * _value_of(var, values)
    return total


def memory_of(buffer: Buffer, memory: Memory) -> Array:
    """The storage of a buffer in scope."""
    if buffer not in memory:
        raise InterpretError(f"buffer {buffer.name} does not exist here")
    return memory[buffer]


def place(
    buffer: Buffer,
    index: tuple[Expr, ...],
    values: Values,
    memory: Memory,
    where: Array | None = None,
) -> tuple[Value, ...]:
    """Element coordinates in `buffer`, checked against its shape; unchecked ones are clipped."""
    if len(index) != len(buffer.shape):
        raise InterpretError(f"{buffer.name} has rank {len(buffer.shape)}, not {len(index)}")
    found = []
    for axis, (expr, extent) in enumerate(zip(index, buffer.shape, strict=True)):
        at = coordinate(expr, values, memory, where)
        if not _inside(at, extent):
            outside = np.less(at, 0) | np.greater_equal(at, extent)
            wrong = outside if where is None else outside & where
            if wrong.any():
                bad = np.broadcast_to(at, wrong.shape)[wrong].flat[0]
                raise InterpretError(
                    f"{show(buffer[index])}: index {axis} is {bad}, extent {extent}"
                )
            at = np.clip(at, 0, extent - 1)
        found.append(at)
    return tuple(found)


def _inside(at: Value, extent: int) -> bool:
    if isinstance(at, int):
        return 0 <= at < extent
    return bool(at.min() >= 0 and at.max() < extent)


def _operate(expr: Expr, left: Value, right: Value, where: Array | None) -> Value:
    kind = type(expr)
    if isinstance(left, int) and isinstance(right, int) and _is_harmless(kind, right):
        return _OF_NUMBERS[kind](left, right)  # most index expressions: no array for one number
    if kind in (FloorDiv, FloorMod):
        wrong = np.equal(right, 0)
        right = _checked(right, wrong, 1, f"division by zero in {show(expr)}", where)
    elif kind is Shr:
        width = 8 * expr.dtype.nbytes
        wrong = np.less(right, 0) | np.greater_equal(right, width)
        right = _checked(right, wrong, 0, f"shift outside 0..{width - 1} in {show(expr)}", where)
    if isinstance(left, int) and isinstance(right, int):
        return _OF_NUMBERS[kind](left, right)
    return OPERATORS[kind](left, right)


def _is_harmless(kind: type[Expr], right: int) -> bool:
    """Whether an operation has a meaning for any left operand, seen at once."""
    return kind is not Shr and (right > 0 or kind not in (FloorDiv, FloorMod))


def _checked(values: Value, wrong: Array, harmless: int, why: str, where: Array | None) -> Value:
    """`values` with the wrong ones made harmless; they must be where it does not matter."""
    if not wrong.any():
        return values
    if where is None or (wrong & where).any():
        raise InterpretError(why)
    return np.where(wrong, np.asarray(values).dtype.type(harmless), values)


def _select(
    condition: Expr,
    then: Expr,
    otherwise: Expr,
    values: Values,
    memory: Memory,
    where: Array | None,
) -> Value:
    holds = evaluate(condition, values, memory, where)
    if isinstance(holds, int) or holds.ndim == 0:
        return evaluate(then if holds else otherwise, values, memory, where)
    yes = holds if where is None else holds & where
    no = ~holds if where is None else ~holds & where
    chosen = evaluate(then, values, memory, yes)
    return np.where(holds, chosen, evaluate(otherwise, values, memory, no))
