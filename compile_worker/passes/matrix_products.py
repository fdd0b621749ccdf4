"""Products of small matrices of 8 bits: what matrix-multiply instructions take.

for p in 0:2: for o in 0:2: for i in 0:8:                 two pixels, or rows, by two channels:
acc[p*2 + o] = acc[p*2 + o] + int32(data[p*16 + i]) * int32(w[o*8 + i])    four sums of eight
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilefarm.dtype import DType

from compile_worker.ir.affine import linear
from compile_worker.ir.expr import Add, Cast, Expr, Load, Mul, Var
from compile_worker.ir.stmt import For, Stmt, Store
from compile_worker.ir.visit import mentioned
from compile_worker.isa import Isa

SIDE: Final = 2
"""Rows of either operand: sums are SIDE x SIDE, row by row."""

DEPTH: Final = 8
"""Products that make a sum, side by side in either operand."""


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """Adds to SIDE x SIDE elements of `total` the products of two rows of `data` and of `weights`.

    Rows of data are `apart` elements from one to the next, and int8 or uint8; those of weights are
    int8, one behind the other. `loops` are the variables that say which row of data, which of
    weights, and which product.
    """

    total: Store
    data: Load
    weights: Load
    apart: int
    loops: tuple[Var, Var, Var]


def matrix_product_by(isa: Isa, stmt: Stmt) -> MatrixProduct | None:
    """The product of matrices that a nest computes, if there is an instruction for it."""
    return matrix_product_of(stmt) if isa.matrix else None


def matrix_product_of(stmt: Stmt) -> MatrixProduct | None:
    """The product of matrices that a nest of three loops computes, if that is what it does."""
    match stmt:
        case For(row, extent, For(column, same, For(over, depth, Store() as store))):
            if (extent, same, depth) != (SIDE, SIDE, DEPTH):
                return None
        case _:
            return None
    match store:
        case Store(
            buffer,
            index,
            Add(
                Load(summed, place),
                Mul(Cast(DType.INT32, Load() as one), Cast(DType.INT32, Load() as other)),
            ),
        ) if (summed, place) == (buffer, index) and buffer.dtype is DType.INT32:
            loops = (row, column, over)
        case _:
            return None
    if _steps(index, loops) != (SIDE, 1, 0):
        return None
    for data, weights in ((one, other), (other, one)):
        steps = _steps(data.index, loops)
        kinds = weights.dtype is DType.INT8 and data.dtype in (DType.INT8, DType.UINT8)
        if kinds and _steps(weights.index, loops) == (0, DEPTH, 1) and steps[1:] == (0, 1):
            return MatrixProduct(store, data, weights, steps[0] or 0, loops)
    return None


def _steps(index: tuple[Expr, ...], loops: tuple[Var, ...]) -> tuple[int | None, ...]:
    """How far an index goes with every step of each variable; None if that is not known."""
    terms, _ = linear(index[0])
    steps = [terms.pop(var, 0) for var in loops]
    known = not any(var in mentioned(term) for term in terms for var in loops)
    return tuple(steps) if known else (None,) * len(loops)
