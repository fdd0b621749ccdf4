"""Schedules on the processor of operators on float32; whatever the shape, parts fit the stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tilefarm.dtype import DType
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.schedule.cpu_room import ROOM, Call, fitting, trace_of

_ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "real_softmax": ("total", "power", "top"),
    "real_normalize": ("root", "squares", "away", "mean", "total"),
}
"""Stages of operators along an axis, those that are read first at the end."""

_ALONG: Final = ("power", "away")
"""Those of them that are as long as the axis; they are computed twice where it is too long."""

_FLOAT: Final = DType.FLOAT32.nbytes


def _reduce(workload: Workload, target: Target) -> Trace:
    """Sums of neighbours grow side by side."""
    del target
    together = fitting(workload.inputs[0].shape[2], _FLOAT)
    return trace_of(
        ("split", "out_b", together),
        ("compute_at", "all", "out_b_0"),
        ("reorder", "all_r", "all_b"),
    )


def _rows(workload: Workload, target: Target) -> Trace:
    """Everything about one row, or about a few of them side by side, while it is in the cache."""
    del target
    _, extent, beside = workload.inputs[0].shape
    together = fitting(beside, extent * _FLOAT)
    stages = _ROWS[workload.operator]
    if workload.operator == "real_normalize" and not workload.attr_int("centered"):
        stages = tuple(stage for stage in stages if stage not in ("away", "mean", "total"))
    is_long = extent * _FLOAT > ROOM
    inlined = [stage for stage in stages if stage in _ALONG and is_long]
    sums = [stage for stage in stages if stage in ("squares", "top", "total")]
    return trace_of(
        *(("compute_inline", stage) for stage in inlined),
        ("split", "out_b", together),
        ("reorder", "out_b_0", "out_r", "out_b_1"),
        *(("compute_at", stage, "out_b_0") for stage in stages if stage not in inlined),
        *(("reorder", f"{stage}_r", f"{stage}_b") for stage in sums),
    )


def _matmul(workload: Workload, target: Target) -> Trace:
    """A row of results grows as a whole, a row of the second operand at a time."""
    del target
    return trace_of(
        ("split", "out_n", fitting(workload.outputs[0].shape[2], _FLOAT)),
        ("compute_at", "dot", "out_n_0"),
        ("reorder", "dot_k", "dot_n"),
    )


def _conv2d(workload: Workload, target: Target) -> Trace:
    """A row of results grows as a whole, from the padded rows of one channel at a time."""
    del target
    *_, kernel_h, kernel_w = workload.inputs[1].shape
    *_, height, width = workload.outputs[0].shape
    together = fitting(width, _FLOAT)
    is_small = height * width * _FLOAT <= ROOM
    return trace_of(
        ("split", "out_w", together),
        ("compute_at", "conv", "out_co" if is_small else "out_w_0"),
        ("reorder", "conv_h", "conv_ci", "conv_kh", "conv_kw", "conv_w"),
        *_padded(workload, (kernel_h, kernel_w), together, "conv_ci"),
    )


def _pool2d(workload: Workload, target: Target) -> Trace:
    """A row of results grows as a whole, from the padded rows that it needs."""
    del target
    kernel_h, kernel_w = workload.attr_ints("kernel")
    together = fitting(workload.outputs[0].shape[-1], _FLOAT)
    return trace_of(
        ("split", "out_w", together),
        ("compute_at", "window", "out_w_0"),
        ("reorder", "window_kh", "window_kw", "window_w"),
        *_padded(workload, (kernel_h, kernel_w), together, "out_w_0"),
    )


def _padded(
    workload: Workload, kernel: tuple[int, int], columns: int, loop: str
) -> tuple[Call, ...]:
    """Where the padded rows of so many columns of the output are made; nowhere if they are too
    many to lie there, and every pixel is asked whether it is inside.
    """
    down, across = (
        step * (taps - 1) + 1
        for step, taps in zip(workload.attr_ints("dilation"), kernel, strict=True)
    )
    width = (columns - 1) * workload.attr_ints("stride")[1] + across
    fits = down * width * _FLOAT <= ROOM
    return (("compute_at", "padded", loop),) if any(workload.attr_ints("pad")) and fits else ()


REAL_RULES: Final[Mapping[str, Callable[[Workload, Target], Trace]]] = {
    "real_reduce": _reduce,
    "real_softmax": _rows,
    "real_normalize": _rows,
    "real_matmul": _matmul,
    "real_conv2d": _conv2d,
    "real_pool2d": _pool2d,
}
