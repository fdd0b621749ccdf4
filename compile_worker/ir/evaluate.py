"""Values of expressions, for one iteration or for a whole block of them at once.

Loop variables are numpy integers; give arrays that broadcast against one another and the value is
an array over all their combinations. Integers wrap at their width, as on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from tilefarm.errors import TilefarmError

from compile_worker.ir.expr import (
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
from compile_worker.ir.printer import show

Array: TypeAlias = npt.NDArray[Any]
Memory: TypeAlias = Mapping[Buffer, Array]
Values: TypeAlias = Mapping[Var, Array]
"""The value of every loop variable in scope."""


class InterpretError(TilefarmError):
    """The program does something that has no meaning: where, and what."""


INTRINSICS: Final[Mapping[str, Callable[..., Array]]] = {"round_even": np.rint}
"""Intrinsic name -> its meaning. round_even: to the nearest integer, halves to the even one."""

OPERATORS: Final[Mapping[type[Expr], Callable[[Array, Array], Array]]] = {
    Add: np.add,
    Sub: np.subtract,
    Mul: np.multiply,
    Div: np.true_divide,
    FloorDiv: np.floor_divide,
    FloorMod: np.remainder,
    Min: np.minimum,
    Max: np.maximum,
    Shr: np.right_shift,
    Lt: np.less,
    Le: np.less_equal,
    Eq: np.equal,
    Ne: np.not_equal,
    And: np.logical_and,
    Or: np.logical_or,
}


def evaluate(expr: Expr, values: Values, memory: Memory, where: Array | None = None) -> Array:
    """The value of `expr`; elements where `where` is false may be anything, and never fail.

    Raises:
        InterpretError: an element outside a buffer, a division by zero, a shift by more than the
            width, or a name that nothing has bound.
    """
    match expr:
        case Var(name):
            if expr not in values:
                raise InterpretError(f"loop variable {name} has no value here")
            return values[expr]
        case Const(value, dtype):
            return np.asarray(value, dtype.numpy)
        case Binary() | Logical():
            left = evaluate(expr.left, values, memory, where)
            right = evaluate(expr.right, values, memory, where)
            return _operate(expr, left, right, where)
        case Load(buffer, index):
            return memory_of(buffer, memory)[place(buffer, index, values, memory, where)]
        case Cast(dtype, value):
            return evaluate(value, values, memory, where).astype(dtype.numpy)
        case Select(condition, then, otherwise):
            return _select(condition, then, otherwise, values, memory, where)
        case Call(name, args):
            if name not in INTRINSICS:
                raise InterpretError(f"unknown intrinsic {name}")
            return INTRINSICS[name](*(evaluate(arg, values, memory, where) for arg in args))
        case _:
            raise InterpretError(f"no meaning for {type(expr).__name__}")


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
) -> tuple[Array, ...]:
    """Element coordinates in `buffer`, checked against its shape; unchecked ones are clipped."""
    if len(index) != len(buffer.shape):
        raise InterpretError(f"{buffer.name} has rank {len(buffer.shape)}, not {len(index)}")
    found = []
    for axis, (expr, extent) in enumerate(zip(index, buffer.shape, strict=True)):
        at = evaluate(expr, values, memory, where)
        outside = (at < 0) | (at >= extent)
        if outside.any():
            if where is None or (outside & where).any():
                bad = at[outside].flat[0] if where is None else _first(at, outside & where)
                raise InterpretError(
                    f"{show(buffer[index])}: index {axis} is {bad}, extent {extent}"
                )
            at = np.clip(at, 0, extent - 1)
        found.append(at)
    return tuple(found)


def _first(values: Array, chosen: Array) -> Any:
    return np.broadcast_to(values, chosen.shape)[chosen].flat[0]


def _operate(expr: Expr, left: Array, right: Array, where: Array | None) -> Array:
    if type(expr) in (FloorDiv, FloorMod):
        right = _checked(right, right == 0, 1, f"division by zero in {show(expr)}", where)
    elif type(expr) is Shr:
        width = 8 * expr.dtype.nbytes
        wrong = (right < 0) | (right >= width)
        right = _checked(right, wrong, 0, f"shift outside 0..{width - 1} in {show(expr)}", where)
    return OPERATORS[type(expr)](left, right)


def _checked(values: Array, wrong: Array, harmless: int, why: str, where: Array | None) -> Array:
    """`values` with the wrong ones made harmless; they must be where it does not matter."""
    if not wrong.any():
        return values
    if where is None or (wrong & where).any():
        raise InterpretError(why)
    return np.where(wrong, values.dtype.type(harmless), values)


def _select(
    condition: Expr,
    then: Expr,
    otherwise: Expr,
    values: Values,
    memory: Memory,
    where: Array | None,
) -> Array:
    holds = evaluate(condition, values, memory, where)
    if holds.ndim == 0:
        return evaluate(then if holds else otherwise, values, memory, where)
    yes = holds if where is None else holds & where
    no = ~holds if where is None else ~holds & where
    chosen = evaluate(then, values, memory, yes)
    return np.where(holds, chosen, evaluate(otherwise, values, memory, no))
