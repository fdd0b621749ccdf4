"""Schedules on the processor of operators on float32; whatever the shape, parts fit the stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tilefarm.dtype import DType
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.isa import isa_of
from compile_worker.passes.flatten import LOCAL_NBYTES
from compile_worker.schedule.cpu_room import ROOM, Call, fitting, trace_of
from compile_worker.te.operators.dynamic_grids import LINE
from compile_worker.te.operators.real_along import stages_along

_ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "real_softmax": ("share", "total", "power", "top"),
    "real_normalize": ("share", "squares", "away", "mean", "total"),
}
"""Stages of operators along an axis, those that are read first at the end."""

_ALONG: Final = ("power", "away")
"""Those of them that are as long as the axis; they are computed twice where it is too long."""

_SUMS: Final = ("squares", "top", "total")
"""Those of them that combine what is along the axis, in several stages perhaps."""

_FLOAT: Final = DType.FLOAT32.nbytes


def _reduce(workload: Workload, target: Target) -> Trace:
    """Sums of neighbours grow side by side."""
    del target
    shape = workload.inputs[0].shape
    stages = stages_along("all", shape)
    return trace_of(
        ("split", "out_b", fitting(shape[2], _FLOAT)),
        *(("compute_at", stage, "out_b_0") for stage in stages),
        _beside(stages),
    )


def _beside(stages: Sequence[str]) -> Call:
    """The order of the loops of the stage that combines terms: sums side by side innermost."""
    return ("reorder", f"{stages[-1]}_r", f"{stages[-1]}_{'b' if len(stages) == 1 else 'i'}")


def _rows(workload: Workload, target: Target) -> Trace:
    """Everything about one row, or about a few of them side by side, while it is in the cache."""
    del target
    _, extent, beside = shape = workload.inputs[0].shape
    together = fitting(beside, extent * _FLOAT)
    stages = _ROWS[workload.operator]
    if workload.operator == "real_normalize" and not workload.attr_int("centered"):
        stages = tuple(stage for stage in stages if stage not in ("away", "mean", "total"))
    is_long = extent * _FLOAT > ROOM
    inlined = [stage for stage in stages if stage in _ALONG and is_long]
    parts = {name: stages_along(name, shape) for name in stages if name in _SUMS}
    every = [part for stage in stages for part in parts.get(stage, (stage,))]
    return trace_of(
        *(("compute_inline", stage) for stage in inlined),
        ("split", "out_b", together),
        ("reorder", "out_b_0", "out_r", "out_b_1"),
        *(("compute_at", stage, "out_b_0") for stage in every if stage not in inlined),
        *(_beside(each) for each in parts.values()),
    )


def _dynamic_grid(workload: Workload, target: Target) -> Trace:
    """Row by row; the ends of columns grow side by side."""
    del target
    has_lines = workload.inputs[0].shape[1] >= LINE
    columns = ("highs", "lows") if has_lines else ()
    return trace_of(
        *(("compute_at", stage, "out_a") for stage in ("scale", "high", "low", *columns)),
        *(("reorder", f"{stage}_r", f"{stage}_i") for stage in columns),
    )


def _matmul(workload: Workload, target: Target) -> Trace:
    """Sums of some rows and of vectors of columns stay in registers."""
    _, rows, columns = workload.outputs[0].shape
    block = _block(target, columns, rows)
    if block is None:
        return trace_of(
            ("split", "out_n", fitting(columns, _FLOAT)),
            ("compute_at", "dot", "out_n_0"),
            ("reorder", "dot_k", "dot_n"),
        )
    lanes, together = block
    return trace_of(
        ("split", "out_n", lanes),
        ("split", "out_m", together),
        ("reorder", "out_m_0", "out_n_0", "out_m_1", "out_n_1"),
        ("compute_at", "dot", "out_n_0"),
        ("reorder", "dot_k", "dot_m", "dot_n"),
        ("unroll", "dot_m"),
        ("unroll", "out_m_1"),
    )


def _conv2d(workload: Workload, target: Target) -> Trace:
    """Sums of vectors of channels and of some pixels of a row stay in registers.

    Where there are no such channels, a row of results grows as a whole, from the padded rows of one
    channel at a time.
    """
    _, channels, kernel_h, kernel_w, _ = workload.inputs[1].shape
    *_, co, height, width = workload.outputs[0].shape
    block = _block(target, co, width)
    if block is not None:
        lanes, together = block
        row = _padded_nbytes(workload, (kernel_h, kernel_w), width)
        place = "out_h" if channels * row <= LOCAL_NBYTES else "conv_ci"
        is_large = workload.inputs[1].nbytes > _CACHE_NBYTES
        outer = ("out_co_0", "out_h") if is_large else ("out_h", "out_co_0")
        return trace_of(
            ("split", "out_co", lanes),
            ("split", "out_w", together),
            ("reorder", *outer, "out_w_0", "out_w_1", "out_co_1"),
            ("compute_at", "conv", "out_w_0"),
            ("reorder", "conv_ci", "conv_kh", "conv_kw", "conv_w", "conv_co"),
            ("unroll", "conv_w"),
            ("unroll", "out_w_1"),
            *([("compute_at", "padded", place)] if row else []),
        )
    together = fitting(width, _FLOAT)
    is_small = height * width * _FLOAT <= ROOM
    padded = _padded_nbytes(workload, (kernel_h, kernel_w), together)
    return trace_of(
        ("split", "out_w", together),
        ("compute_at", "conv", "out_co" if is_small else "out_w_0"),
        ("reorder", "conv_h", "conv_ci", "conv_kh", "conv_kw", "conv_w"),
        *([("compute_at", "padded", "conv_ci")] if 0 < padded <= ROOM else []),
    )


_CACHE_NBYTES: Final = 1 << 19
"""Of weights that are read again for each row; of more, a block of channels is, for all rows."""

_SPARE: Final = 4
"""Registers that sums leave to weights, what multiplies them, and products."""

_MOST_VECTORS: Final = 4
"""Of one block: more share too few registers with pixels."""


def _block(target: Target, lanes: int, beside: int) -> tuple[int, int] | None:
    """How many lanes of `lanes`, and of things `beside` them, have their sums in registers.

    As many sums as there is room for, in as few loads: of vectors, and of each thing. None where
    the lanes fill no vectors, or floats are computed one by one.
    """
    isa = isa_of(target.host)
    room = isa.registers - _SPARE
    choices = [
        (vectors * things, -(vectors + things), -vectors, things)
        for vectors in range(1, _MOST_VECTORS + 1)
        for things in range(1, room // vectors + 1)
        if lanes % (vectors * isa.lanes) == 0 and beside % things == 0
    ]
    if not choices or not isa.exact_floats:
        return None
    *_, fewer, things = max(choices)
    return -fewer * isa.lanes, things


def _pool2d(workload: Workload, target: Target) -> Trace:
    """A row of results grows as a whole, from the padded rows that it needs."""
    del target
    kernel_h, kernel_w = workload.attr_ints("kernel")
    together = fitting(workload.outputs[0].shape[-1], _FLOAT)
    padded = _padded_nbytes(workload, (kernel_h, kernel_w), together)
    return trace_of(
        ("split", "out_w", together),
        ("compute_at", "window", "out_w_0"),
        ("reorder", "window_kh", "window_kw", "window_w"),
        *([("compute_at", "padded", "out_w_0")] if 0 < padded <= ROOM else []),
    )


def _padded_nbytes(workload: Workload, kernel: tuple[int, int], columns: int) -> int:
    """Bytes of the padded rows that so many columns of the output need; 0 where nothing is padded.

    Where they do not fit the stack, every pixel is asked whether it is inside.
    """
    down, across = (
        step * (taps - 1) + 1
        for step, taps in zip(workload.attr_ints("dilation"), kernel, strict=True)
    )
    width = (columns - 1) * workload.attr_ints("stride")[1] + across
    return down * width * _FLOAT if any(workload.attr_ints("pad")) else 0


REAL_RULES: Final[Mapping[str, Callable[[Workload, Target], Trace]]] = {
    "real_reduce": _reduce,
    "dynamic_grid": _dynamic_grid,
    "real_softmax": _rows,
    "real_normalize": _rows,
    "real_matmul": _matmul,
    "real_conv2d": _conv2d,
    "real_pool2d": _pool2d,
}
