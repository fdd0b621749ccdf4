"""Functions of 8 bits by a table of 256 entries."""

from __future__ import annotations

from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import INDEX, Cast, Expr, Var
from compile_worker.te.operators.elementwise import elementwise, narrowed, shifted_down, widened
from compile_worker.te.tensor import Tensor

_FIRST: Final = {DType.INT8: 128, DType.UINT8: 0}
"""The entry that belongs to 0 of a type."""


def lookup(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone, of the type of the table.

    table is [256], or [C/c, c, 256] with a row for each channel.
    """
    x, table = inputs
    by_channel = len(table.shape) > 1

    def value(*at: Var) -> Expr:
        row = (at[1], at[-1]) if by_channel else ()
        return table[*row, _entry(x[at])]

    return [elementwise(workload.outputs[0].name, x, value, scope="dram")]


def product(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages product, lower, upper and the output of a times a function of b. table is int32."""
    a, b, table = inputs
    shift = workload.attr_int("shift")

    def value(*at: Var) -> Expr:
        return shifted_down(widened(a[at]) * table[_entry(b[at])], shift)

    wide = elementwise("product", a, value)
    low, high = workload.attr_int("lo"), workload.attr_int("hi")
    return [wide, *narrowed(workload.outputs[0].name, wide, low, high)]


def _entry(value: Expr) -> Expr:
    """The entry of a table that belongs to a value of 8 bits."""
    first = _FIRST[value.dtype]
    return Cast(INDEX, value) + first if first else Cast(INDEX, value)
