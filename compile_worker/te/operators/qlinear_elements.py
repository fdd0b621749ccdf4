"""Operators on 8 bits and float32 element by element, as ONNX defines them.

    quantize_linear     q = saturated(round_half_even(x / scale) + zero)
    dequantize_linear   x = float32(q - zero) * scale
    qlinear_zip         two tensors dequantized, combined, quantized

Reals are float32, and every operation rounds by itself.
"""

from __future__ import annotations

from tilefarm.workload import Workload

from compile_worker.ir.expr import Cast, Expr, Var
from compile_worker.te.operators.elementwise import data_axes, plain_axes
from compile_worker.te.operators.layout import blocked_index, logical_index, present
from compile_worker.te.operators.qlinear_results import ENDS, combined, grid_of
from compile_worker.te.operators.real_elements import repeated
from compile_worker.te.operators.window import guarded
from compile_worker.te.tensor import Tensor, compute


def qlinear_zip(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone. Where an operand has extent 1 it is read at 0."""
    a, b = inputs
    spec = workload.outputs[0]
    ends = (workload.attr_int("lo"), workload.attr_int("hi"))

    def element(*at: Var) -> Expr:
        both = combined(workload, a[repeated(a, at)], b[repeated(b, at)])
        return Cast(spec.dtype, grid_of(workload, "").steps(both, *ends))

    axes = {f"i{axis}": extent for axis, extent in enumerate(spec.shape)}
    return [compute(spec.name, axes, element, scope="dram")]


def quantize_linear(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone, blocked. x [N, C, ...] is float32."""
    (x,) = inputs
    spec = workload.outputs[0]

    def element(*at: Var) -> Expr:
        logical = logical_index(at, spec.shape)
        steps = grid_of(workload, "").steps(x[tuple(logical)], *ENDS[spec.dtype])
        value = Cast(spec.dtype, steps)
        return guarded(present(logical, x.shape, spec.shape), value, 0)

    return [compute(spec.name, data_axes(spec.shape), element, scope="dram")]


def dequantize_linear(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone, float32 [N, C, ...]. x is blocked."""
    (x,) = inputs
    spec = workload.outputs[0]

    def element(*at: Var) -> Expr:
        return grid_of(workload, "").reals(x[blocked_index(at, x.shape)])

    return [compute(spec.name, plain_axes(spec.shape), element, scope="dram")]
