"""Softmax over channels by a table of exponentials, in a fixed order of float32 operations."""

from __future__ import annotations

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import INDEX, Cast, Div, Expr, Var
from compile_worker.te.operators.elementwise import widened
from compile_worker.te.operators.layout import blocked_index
from compile_worker.te.tensor import Reduction, Tensor, compute, largest, total


def softmax(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages top, power, sum and the output [N, C] float32, over logical channels only.

    x [N/b, C/c, b, c] is int8; table[k] is what exp gives k steps below the largest value.
    """
    x, table = inputs
    spec = workload.outputs[0]
    rows, channels = spec.shape

    def value(n: Expr, c: Expr) -> Expr:
        return widened(x[blocked_index((n, c), x.shape)])

    def highest(n: Var) -> Reduction:
        return largest(DType.INT32, {"c": channels}, lambda c: value(n, c))

    top = compute("top", {"n": rows}, highest)

    def exponential(n: Var, c: Var) -> Expr:
        return table[Cast(INDEX, top[n] - value(n, c))]

    power = compute("power", {"n": rows, "c": channels}, exponential)

    def added(n: Var) -> Reduction:
        return total(DType.FLOAT32, {"c": channels}, lambda c: power[n, c])

    whole = compute("sum", {"n": rows}, added)
    share = compute(
        spec.name,
        {"n": rows, "c": channels},
        lambda n, c: Div(power[n, c], whole[n]),
        scope="dram",
    )
    return [top, power, whole, share]
