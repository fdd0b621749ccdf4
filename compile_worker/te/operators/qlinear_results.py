"""What follows the sums of ONNX's quantized layers: scale, addend, rounding, zero point, epilogue.

    real = float32(sum + bias) * scale + addend
    out  = clip(round_half_even(real)) + zero                      or the real, if out is float32
    out  = clip(round_half_even(function(that, other) / to_scale)) + to_zero

Every operation on reals rounds to float32 by itself. The last line is there if there is another
operand, as of a residual addition; the function is of what the integers of both stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Call, Cast, Expr, Max, Min, Var
from compile_worker.te.operators.elementwise import axes_of, widened
from compile_worker.te.operators.real_words import COMBINED, number
from compile_worker.te.tensor import Tensor, compute

ENDS: Final = {DType.INT8: (-128, 127), DType.UINT8: (0, 255)}
"""The least and the most of the types that data have."""


@dataclass(frozen=True, slots=True)
class Grid:
    """(q - zero) * scale for the integers q of a tensor."""

    scale: float
    zero: int

    def reals(self, steps: Expr) -> Expr:
        """Of integers of any type, float32."""
        centered = widened(steps) - self.zero if self.zero else widened(steps)
        return Cast(DType.FLOAT32, centered) * number(self.scale)

    def steps(self, reals: Expr, low: int, high: int) -> Expr:
        """The nearest integers within low..high, int32; low for what is not a number."""
        return clipped(reals / number(self.scale), self.zero, low, high)


def grid_of(workload: Workload, name: str) -> Grid:
    """The grid of the attributes `<name>scale` and `<name>zero`."""
    return Grid(workload.attr_float(f"{name}scale"), workload.attr_int(f"{name}zero"))


def clipped(real: Expr, zero: int, low: int, high: int) -> Expr:
    """A float32 rounded, halves to even, plus a zero point, within low..high, as int32."""
    within = Min(Max(real, number(low - zero)), number(high - zero))
    whole = Cast(DType.INT32, Call("round_even", (within,), DType.FLOAT32))
    return whole + zero if zero else whole


_EXTREMES: Final = {"max": Max, "min": Min}
"""What integers stand for is never NaN, so one instruction takes the larger."""


def combined(workload: Workload, a: Expr, b: Expr) -> Expr:
    """The workload's function of what its integers `a` and `b` stand for."""
    function = {**COMBINED, **_EXTREMES}[workload.attr_str("function")]
    return function(grid_of(workload, "a_").reals(a), grid_of(workload, "b_").reals(b))


def by_channel(
    sums: Tensor, inputs: Sequence[Tensor], workload: Workload, less: Tensor | None = None
) -> Tensor:
    """The output of sums that a layer has for its channels [N, ..., l], with bias and scale.

    `inputs` are the layer's; those of channels have the axes of `sums` between N and its pixels.
    `less` is what the sums of all channels are too large by: it has their axes but the blocks.
    """
    named = {each.buffer.name: each for each in inputs}
    bias, scale, addend = named["bias"], named["scale"], named.get("addend")
    groups = len(bias.shape) - 1

    def real(*at: Var) -> Expr:
        channel = (*at[1 : 1 + groups], at[-1])
        whole = sums[at] if less is None else sums[at] - less[*at[:groups], *at[1 + groups :]]
        scaled = Cast(DType.FLOAT32, whole + bias[channel]) * scale[channel]
        return scaled if addend is None else scaled + addend[channel]

    return result(axes_of(sums), real, workload, named.get("other"))


def result(
    axes: Mapping[str, int],
    real: Callable[..., Expr],
    workload: Workload,
    other: Tensor | None = None,
) -> Tensor:
    """The output of the reals that sums stand for; `other` has its axes too."""
    spec = workload.outputs[0]

    def value(*at: Var) -> Expr:
        if spec.dtype.is_float:
            return real(*at)
        steps = clipped(real(*at), *(workload.attr_int(name) for name in ("zero", "lo", "hi")))
        if other is not None:
            ends = (workload.attr_int(name) for name in ("to_lo", "to_hi"))
            both = combined(workload, steps, other[at])
            steps = grid_of(workload, "to_").steps(both, *ends)
        return Cast(spec.dtype, steps)

    return compute(spec.name, axes, value, scope="dram")
