"""qlinear_matmul: the product of two activations of 8 bits, packed for dot products on the way.

    rows[z, k/p, i, k%p] = a[z, k, i]       columns[z, j/16, k/p, j%16, k%p] = int8(b[z, k, j])
    dot[z, i, j] = sum over k of a * b
    sum over k of (a - a0) * (b - b0) = dot - b0 * sum of a - a0 * sum of b + K * a0 * b0

p is 4, or the attribute `depth`: 8 for products of matrices.
Columns are summed by dot products with ones, rows as they come, side by side. The instructions take
signed columns: those of uint8 are moved by 128, and so is their zero point.
"""

from __future__ import annotations

from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import INDEX, Cast, Const, Expr, Lt, Var
from compile_worker.te.operators.elementwise import widened
from compile_worker.te.operators.qlinear import QUAD
from compile_worker.te.operators.qlinear_results import result
from compile_worker.te.operators.real_words import number
from compile_worker.te.operators.window import guarded
from compile_worker.te.tensor import Reduction, Tensor, compute, total

LANES: Final = 16
"""Columns of a block: int32 sums of a cache line."""

_GROUP: Final = 4
"""Rows whose sums any processor holds in registers."""

_MIDDLE: Final = 128
"""What uint8 is moved by to become int8."""


def qlinear_matmul(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages rows, columns, [row_sums, row_terms], [ones, column_sums, column_terms], dot and out.

    a [Z, K, I], b [Z, K, J]. Terms, what is taken off the products, are there where the other
    operand has a zero point.
    """
    depth = depth_of(workload)
    rows, columns = packed_rows(inputs[0], depth), packed_columns(inputs[1], depth)
    a_zero, b_zero = zeros_of(workload)
    by_row = _row_terms(inputs[0], b_zero, a_zero * b_zero) if b_zero else []
    by_column = _column_terms(columns, a_zero) if a_zero else []
    dot = _dot(rows, columns)
    scale = number(workload.attr_float("scale"))

    def real(z: Var, i: Var, j: Var) -> Expr:
        block, lane = j // LANES, j % LANES
        products: Expr = dot[z, i, block, 0, lane]
        for terms in by_row[-1:]:
            products = products - terms[z, i]
        for terms in by_column[-1:]:
            products = products - terms[z, block, lane]
        return Cast(DType.FLOAT32, products) * scale

    axes = dict(zip("zij", workload.outputs[0].shape, strict=True))
    return [rows, columns, *by_row, *by_column, dot, result(axes, real, workload)]


def depth_of(workload: Workload) -> int:
    """Products of a sum that are packed side by side."""
    return workload.attr_int("depth") if "depth" in dict(workload.attrs) else QUAD


def zeros_of(workload: Workload) -> tuple[int, int]:
    """The zero points of what is multiplied."""
    moved = _moved(workload.inputs[1].dtype)
    return workload.attr_int("a_zero"), workload.attr_int("b_zero") - moved


def rows_together(rows: int) -> int:
    """How many rows are counted together: some fill up a last group, so that many divide them."""
    return min(rows, _GROUP)


def packed_rows(a: Tensor, depth: int) -> Tensor:
    """[Z, K/p, I, p] of a [Z, K, I]; what fills up a depth of p, and groups of rows, is 0."""
    z, k, count = a.shape
    together = rows_together(count)

    def element(z: Var, q: Var, i: Var, r: Var) -> Expr:
        place = q * depth + r
        return guarded(_within(place, k, depth) + _within(i, count, together), a[z, place, i], 0)

    return compute(
        "rows",
        {"z": z, "q": -(-k // depth), "i": -(-count // together) * together, "r": depth},
        element,
    )


def packed_columns(b: Tensor, depth: int) -> Tensor:
    """int8 [Z, J/16, K/p, 16, p] of b [Z, K, J]; what fills up blocks and a depth of p is 0."""
    z, k, j = b.shape
    moved = _moved(b.dtype)

    def element(z: Var, c: Var, q: Var, o: Var, r: Var) -> Expr:
        row, column = q * depth + r, c * LANES + o
        stored = b[z, row, column]
        value = Cast(DType.INT8, widened(stored) - moved) if moved else stored
        return guarded(_within(row, k, depth) + _within(column, j, LANES), value, 0)

    axes = {"z": z, "c": -(-j // LANES), "q": -(-k // depth), "o": LANES, "r": depth}
    return compute("columns", axes, element)


def _row_terms(a: Tensor, b_zero: int, both: int) -> list[Tensor]:
    """Stages row_sums and row_terms [Z, I], b0 * (sum of a - K * a0)."""
    z, k, count = a.shape
    axes = {"z": z, "i": count}

    def element(z: Var, i: Var) -> Reduction:
        return total(DType.INT32, {"k": k}, lambda k: widened(a[z, k, i]))

    sums = compute("row_sums", axes, element)
    return [sums, compute("row_terms", axes, lambda z, i: sums[z, i] * b_zero - both * k)]


def _column_terms(columns: Tensor, a_zero: int) -> list[Tensor]:
    """Stages ones, column_sums and column_terms [Z, J/16, 16], a0 * sum of b."""
    z, c, groups, o, depth = columns.shape
    axes = {"z": z, "c": c, "o": o}
    ones = compute("ones", {"r": depth}, lambda _: Const(1, DType.UINT8))

    def element(z: Var, c: Var, o: Var) -> Reduction:
        def product(q: Var, r: Var) -> Expr:
            return widened(ones[r]) * widened(columns[z, c, q, o, r])

        return total(DType.INT32, {"q": groups, "r": depth}, product)

    sums = compute("column_sums", axes, element)
    terms = compute("column_terms", axes, lambda z, c, o: sums[z, c, o] * a_zero)
    return [ones, sums, terms]


def _dot(rows: Tensor, columns: Tensor) -> Tensor:
    z, c, groups, o, depth = columns.shape

    def element(z: Var, i: Var, c: Var, b: Var, o: Var) -> Reduction:
        del b

        def product(q: Var, r: Var) -> Expr:
            return widened(rows[z, q, i, r]) * widened(columns[z, c, q, o, r])

        return total(DType.INT32, {"q": groups, "r": depth}, product)

    return compute("dot", {"z": z, "i": rows.shape[2], "c": c, "b": 1, "o": o}, element)


def _within(place: Expr, extent: int, together: int) -> list[Expr]:
    """The condition for a place to exist, where what is counted by so many does not come out."""
    return [Lt(place, Const(extent, INDEX))] if extent % together else []


def _moved(dtype: DType) -> int:
    return _MIDDLE if dtype is DType.UINT8 else 0
