"""qlinear_avg_pool2d: sums under a window, less the zero point, scaled and rounded."""

from __future__ import annotations

from math import prod

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Cast, Expr, Var
from compile_worker.te.operators.elementwise import axes_of, widened
from compile_worker.te.operators.pooling import pooled
from compile_worker.te.operators.qlinear_results import result
from compile_worker.te.operators.window import padded
from compile_worker.te.tensor import Tensor, total


def qlinear_avg_pool2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded], sum and the output. scale [OH, OW] is float32.

    Every window has as many zero points in it, those of its padding included.
    """
    x, scale = inputs
    zero = workload.attr_int("x_zero")
    before = padded(workload, x, zero)
    image = before[0] if before else x
    sums = pooled("sum", workload, lambda *at: widened(image[at]), total, DType.INT32)
    zeros = zero * prod(workload.attr_ints("kernel"))

    def real(*at: Var) -> Expr:
        centered = sums[at] - zeros if zeros else sums[at]
        return Cast(DType.FLOAT32, centered) * scale[at[2], at[3]]

    return [*before, sums, result(axes_of(sums), real, workload)]
