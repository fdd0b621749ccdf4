"""Element by element on int8 with int32 in between: add two tensors, scale channels."""

from __future__ import annotations

from tilefarm.workload import Workload

from compile_worker.ir.expr import Expr, Var
from compile_worker.te.operators.elementwise import (
    channelwise,
    elementwise,
    narrowed,
    shifted_down,
    widened,
)
from compile_worker.te.tensor import Tensor


def add(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages sum, lower, upper and the output of a weighted, rounded addition."""
    a, b = inputs
    mul_a, mul_b = workload.attr_int("mul_a"), workload.attr_int("mul_b")
    shift = workload.attr_int("shift")

    def value(*at: Var) -> Expr:
        return shifted_down(widened(a[at]) * mul_a + widened(b[at]) * mul_b, shift)

    return _narrowed(workload, elementwise("sum", a, value))


def affine(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages scaled, lower, upper and the output of a scale, offset and shift per channel."""
    x, mul, offset, shift = inputs

    def value(*at: Var) -> Expr:
        channel = channelwise(at)
        return (widened(x[at]) * mul[channel] + offset[channel]) >> shift[channel]

    return _narrowed(workload, elementwise("scaled", x, value))


def _narrowed(workload: Workload, wide: Tensor) -> list[Tensor]:
    low, high = workload.attr_int("lo"), workload.attr_int("hi")
    return [wide, *narrowed(workload.outputs[0].name, wide, low, high)]
