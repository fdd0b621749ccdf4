"""Products of matrices of 8 bits by the instruction that a processor has for them.

    sums 2 x 2 += data 2 x 8 times weights 2 x 8 transposed      twice what a dot product does

smmla takes int8 data, usmmla uint8; weights are int8, and sums are exact.
"""

from __future__ import annotations

from typing import Final

from tilefarm.dtype import DType

from compile_worker.codegen.dots import INSTRUCTIONS
from compile_worker.codegen.interleave import shuffled
from compile_worker.codegen.scalars import Scalars
from compile_worker.codegen.text import FunctionText
from compile_worker.ir.expr import INDEX, Const, Load
from compile_worker.ir.simplify import simplify
from compile_worker.ir.stmt import Store
from compile_worker.ir.visit import substitute
from compile_worker.passes.matrix_products import DEPTH, SIDE, MatrixProduct

_ROW: Final = f"<{DEPTH} x i8>"
_ROWS: Final = f"<{SIDE * DEPTH} x i8>"
_SUMS: Final = f"<{SIDE * SIDE} x i32>"


def write_matrix_product(text: FunctionText, scalars: Scalars, product: MatrixProduct) -> None:
    """Add the products to the sums in memory."""

    def address(access: Load | Store) -> str:
        first = {var: Const(0, INDEX) for var in product.loops}
        return scalars.address(access.buffer, (simplify(substitute(access.index[0], first)),))

    scalars.enter()
    total = address(product.total)
    data = _two_rows(text, address(product.data), product.apart)
    weights = text.op(f"load {_ROWS}, ptr {address(product.weights)}, align 1")
    start = text.op(f"load {_SUMS}, ptr {total}, align 4")
    is_unsigned = product.data.dtype is DType.UINT8
    instruction = INSTRUCTIONS["usmmla" if is_unsigned else "smmla"]
    operands = f"{_SUMS} {start}, {_ROWS} {data}, {_ROWS} {weights}"
    found = text.op(f"call {_SUMS} @{instruction}({operands})")
    text.do(f"store {_SUMS} {found}, ptr {total}, align 4")
    scalars.leave()


def _two_rows(text: FunctionText, first: str, apart: int) -> str:
    """Two rows that are so many bytes apart, in one vector."""
    if apart == DEPTH:
        return text.op(f"load {_ROWS}, ptr {first}, align 1")
    second = text.op(f"getelementptr i8, ptr {first}, i64 {apart}")
    above, below = (text.op(f"load {_ROW}, ptr {each}, align 1") for each in (first, second))
    return shuffled(text, above, below, range(SIDE * DEPTH), DEPTH, "i8")
