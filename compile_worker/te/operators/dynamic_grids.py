"""Grids that data decide while a network runs, as ONNX's DynamicQuantizeLinear defines them.

    dynamic_grid              scale = (high - low) / 255, zero = round_half_even(0 - low / scale)
    dynamic_quantize_linear   q = saturated(round_half_even(x / scale) + zero)
    dynamic_bias              what makes up for that zero point in the sums of a layer

Reals are float32, and every operation rounds by itself. low and high are the ends of a row with 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import INDEX, Call, Cast, Const, Eq, Expr, Lt, Max, Min, Select, Var
from compile_worker.te.operators.elementwise import data_axes, widened
from compile_worker.te.operators.layout import logical_index, present
from compile_worker.te.operators.qlinear_results import ENDS
from compile_worker.te.operators.real_words import number
from compile_worker.te.operators.window import guarded, shifted, within
from compile_worker.te.tensor import Combine, Reduction, Tensor, compute

LINE: Final = 64
"""Neighbours that have an end each before they share one: vectors enough to hide a latency."""

_SCALE, _ZERO = 0, 1
_LOW, _HIGH = ENDS[DType.UINT8]


def dynamic_grid(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [lows, highs], low, high, scale and the output [A, 2]. x is [A, R].

    A minimum has no order: neighbours side by side, then all of them and what fills no line.
    """
    (x,) = inputs
    lows, low = _end("low", x, lambda end, value: Min(value, end))
    highs, high = _end("high", x, lambda end, value: Max(value, end))

    def step(a: Var) -> Expr:
        return Select(Eq(low[a], high[a]), number(1), (high[a] - low[a]) / number(_HIGH))

    scale = compute("scale", {"a": x.shape[0]}, step)

    def element(a: Var, i: Var) -> Expr:
        zero = _rounded(number(0) - low[a] / scale[a], number(_LOW), number(_HIGH))
        return Select(Lt(i, Const(_ZERO, INDEX)), scale[a], zero)

    axes = {"a": x.shape[0], "i": 2}
    out = compute(workload.outputs[0].name, axes, element, scope="dram")
    return [*lows, *highs, low, high, scale, out]


def dynamic_quantize_linear(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone, blocked. x [N, C, ...] and grid [N, 2] are float32."""
    x, grid = inputs
    spec = workload.outputs[0]
    pad = workload.attr_ints("pad") if "pad" in dict(workload.attrs) else ()

    def element(*at: Var) -> Expr:
        n, c, *space = logical_index(at, spec.shape)
        exists = present([n, c], x.shape, spec.shape)
        inside: list[Expr] = []
        if pad:
            (h, w), (top, left, bottom, right) = space, pad
            inside = within(h, top, x.shape[2], bottom) + within(w, left, x.shape[3], right)
            space = [shifted(h, top), shifted(w, left)]
        zero = grid[n, _ZERO]
        steps = _rounded(
            x[n, c, *space] / grid[n, _SCALE], number(_LOW) - zero, number(_HIGH) - zero
        )
        value = Cast(spec.dtype, widened(guarded(inside, steps, 0) + zero))
        return guarded(exists, value, 0)

    return [compute(spec.name, data_axes(spec.shape), element, scope="dram")]


def dynamic_bias(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone, int32 [C/l, l]: bias - zero * taps."""
    grid, taps, bias = inputs
    spec = workload.outputs[0]

    def element(co: Var, o: Var) -> Expr:
        return bias[co, o] - widened(grid[0, _ZERO]) * taps[co, o]

    return [
        compute(spec.name, dict(zip(("co", "o"), spec.shape, strict=True)), element, scope="dram")
    ]


def _end(name: str, x: Tensor, combine: Combine) -> tuple[list[Tensor], Tensor]:
    """The end of every row with 0, and the ends of its columns in lines, if it fills a line."""
    rows, extent = x.shape
    lines = extent // LINE
    rest = extent - lines * LINE
    ends: list[Tensor] = []
    if lines:

        def column(a: Var, i: Var) -> Reduction:
            return Reduction(combine, number(0), {"r": lines}, lambda r: x[a, r * LINE + i])

        ends = [compute(f"{name}s", {"a": rows, "i": LINE}, column)]
    return ends, compute(name, {"a": rows}, _of_all(x, ends, rest, combine))


def _of_all(
    x: Tensor, ends: list[Tensor], rest: int, combine: Combine
) -> Callable[[Var], Reduction]:
    first = x.shape[1] - rest

    def whole(a: Var) -> Reduction:
        if not ends:
            return Reduction(combine, number(0), {"r": rest}, lambda r: x[a, r])
        (columns,) = ends
        if not rest:
            return Reduction(combine, number(0), {"r": LINE}, lambda r: columns[a, r])

        def either(r: Var) -> Expr:
            return Select(
                Lt(r, Const(rest, INDEX)),
                x[a, first + r],
                columns[a, Max(r - rest, Const(0, INDEX))],
            )

        return Reduction(combine, number(0), {"r": rest + LINE}, either)

    return whole


def _rounded(real: Expr, low: Expr, high: Expr) -> Expr:
    """A float32 rounded, halves to even, within low..high; low for what is not a number."""
    return Call("round_even", (Min(Max(real, low), high),), DType.FLOAT32)
