"""Schedules of operators on the processor: what `compile_kernel` takes when a trace is empty.

The rest is up to the passes: they inline, merge, cut and vectorize whatever a schedule leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.isa import isa_of
from compile_worker.passes.vectorize_loops import LANES
from compile_worker.schedule.cpu_reals import REAL_RULES
from compile_worker.schedule.cpu_room import ROOM, Call, trace_of
from compile_worker.te.operators.elementwise import data_axes, plain_axes

_NOTHING: Final = Trace()

_MUCH_COPYING: Final = 1 << 24
"""Elements that are worth a second thread: waking one takes as long as a million."""

_MUCH_WORK: Final = 1 << 26
"""Products that are worth a second thread."""

_FEW: Final = 4
"""Channels of an image that are written out one by one."""

_WOVEN: Final = 32
"""Lanes of a vector that are interleaved: LLVM takes seconds for many more."""

_BLOCKS: Final = 16
"""Blocks of channels that are written out one by one, at most."""


def cpu_trace(workload: Workload, target: Target) -> Trace:
    """The schedule of a workload on the processor; empty where the plain nest is as good."""
    rule = _RULES.get(workload.operator)
    return _NOTHING if rule is None else rule(workload.unbordered, target)


def _quantize(workload: Workload, target: Target) -> Trace:
    """A few channels of many lanes: pixels side by side are read at once, and lanes interleaved."""
    del target
    batch, lanes = workload.outputs[0].shape[-2:]
    is_few = workload.inputs[0].shape[1] <= _FEW and batch * lanes <= _WOVEN
    return trace_of(("unroll", "out_o")) if is_few else _NOTHING


def _to_blocks(workload: Workload, target: Target) -> Trace:
    """Channels one after the other, many pixels of each at once: lanes are woven when stored."""
    (x, *_), (out,) = workload.inputs, workload.outputs
    is_turned = _is_turned(workload, target, x.shape[:2], out.shape)
    return trace_of(("unroll", "out_o")) if is_turned else _NOTHING


def _from_blocks(workload: Workload, target: Target) -> Trace:
    """Lanes of many pixels are loaded at once, and each channel's are stored side by side."""
    (x,), (out,) = workload.inputs, workload.outputs
    if not _is_turned(workload, target, out.shape[:2], x.shape):
        return _NOTHING
    axes = data_axes if workload.operator == "relayout" else plain_axes
    n, channels, *inner = (f"out_{name}" for name in axes(out.shape))
    return trace_of(
        ("split", channels, LANES),
        ("reorder", n, f"{channels}_0", *inner, f"{channels}_1"),
        ("unroll", f"{channels}_1"),
    )


def _relayout(workload: Workload, target: Target) -> Trace:
    """Between rows of pixels and blocks of channels; others are as they are."""
    if workload.attr_ints("logical_in")[:2] != workload.attr_ints("logical_out")[:2]:
        return _NOTHING
    to_blocks = workload.inputs[0].shape[-1] == 1
    return (_to_blocks if to_blocks else _from_blocks)(workload, target)


def _is_turned(
    workload: Workload, target: Target, plain: tuple[int, ...], blocked: tuple[int, ...]
) -> bool:
    """Whether bytes go between channels [N, C] of pixels and whole blocks of them, in registers.

    Pixels fill vectors, too: LLVM takes minutes for sixteen vectors of five lanes.
    """
    *_, batch, lanes = blocked
    return (
        isa_of(target.host).has_byte_tables
        and "pad" not in dict(workload.attrs)
        and (batch, lanes) == (1, LANES)
        and plain == (blocked[0], blocked[1] * LANES)
        and math.prod(blocked[2:-2]) % LANES == 0
    )


def _quantize_windows(workload: Workload, target: Target) -> Trace:
    """Rows of pixels are quantized once, then the windows of one row of the output are copied."""
    del target
    channels, width = workload.inputs[0].shape[1], workload.inputs[0].shape[3]
    _, blocks, out_h, out_w, batch, _ = workload.outputs[0].shape
    kernel_h, kernel_w = workload.attr_ints("kernel")
    _, left, _, right = workload.attr_ints("pad")
    if out_w * kernel_h * kernel_w * channels * batch > ROOM:
        return _NOTHING
    reach = (kernel_h - 1) * workload.attr_ints("dilation")[0] + 1
    row = (width + left + right) * channels * batch
    fitting = [
        rows
        for rows in range(1, out_h + 1)
        if out_h % rows == 0
        and ((rows - 1) * workload.attr_ints("stride")[0] + reach) * row <= ROOM
    ]
    if not fitting or blocks > _BLOCKS:
        return _NOTHING
    steps: list[Call] = [
        ("split", "out_h", fitting[-1]),
        ("reorder", "out_h_0", "out_h_1", "out_w", "out_co"),
        ("compute_at", "windows", "out_h_1"),
        ("compute_at", "pixels", "out_h_0"),
        ("unroll", "out_co"),
    ]
    if channels <= _FEW:
        steps.append(("unroll", "pixels_c"))
    if workload.outputs[0].nbytes >= _MUCH_COPYING:
        steps.append(("parallel", "out_h_0"))
    return trace_of(*steps)


def _conv2d(workload: Workload, target: Target) -> Trace:
    """Sums of neighbouring pixels in registers; rows of the image padded beforehand if they fit.

    A tile of weights is turned for the dot products once for all of these pixels.
    """
    padded = any(workload.attr_ints("pad")) and _rows_nbytes(workload) <= ROOM
    phases = ("out_p",) if workload.operator == "conv2d_transpose" else ()
    across = ("out_q",) if phases else ()
    steps = [
        *_sums_of_pixels(
            workload,
            target,
            "conv",
            order=("out_h", *phases, "out_co", *across, "out_w_0", "out_w_1"),
            inner=("conv_ci", "conv_kh", "conv_kw", "conv_w", "conv_b", "conv_i", "conv_o"),
        ),
        *([("compute_at", "padded", "out_h")] if padded else []),
        *([("parallel", "out_h")] if _products(workload) >= _MUCH_WORK else []),
    ]
    return trace_of(*steps)


def _matmul(workload: Workload, target: Target) -> Trace:
    """As a convolution of kernel 1 over the rows of a matrix."""
    return trace_of(
        *_sums_of_pixels(
            workload,
            target,
            "dot",
            order=("out_co", "out_w_0", "out_w_1"),
            inner=("dot_ci", "dot_w", "dot_b", "dot_i", "dot_o"),
        )
    )


def _dense(workload: Workload, target: Target) -> Trace:
    """The sums of one block of channels at a time."""
    del target
    biased = workload.tensor("bias") is not None
    return trace_of(
        *_inlined_epilogue(workload),
        *([("compute_at", "biased", "out_co")] if biased else []),
        ("compute_at", "dot", "out_co"),
        ("reorder", "dot_ci", "dot_b", "dot_i", "dot_o"),
    )


def _sums_of_pixels(
    workload: Workload,
    target: Target,
    sums: str,
    *,
    order: tuple[str, ...],
    inner: tuple[str, ...],
) -> list[Call]:
    """Cut rows into as many pixels as registers hold, and compute what each needs inside."""
    width = workload.outputs[0].shape[-3]
    if workload.operator == "conv2d_transpose":
        width //= workload.attr_ints("stride")[1]
    pixels = _pixels(width, isa_of(target.host).pixels)
    biased = workload.tensor("bias") is not None
    return [
        *_inlined_epilogue(workload),
        ("split", "out_w", pixels),
        ("reorder", *order),
        *([("compute_at", "biased", "out_w_0"), ("unroll", "biased_w")] if biased else []),
        ("compute_at", sums, "out_w_0"),
        ("reorder", *inner),
        ("unroll", f"{sums}_w"),
        ("unroll", "out_w_1"),
    ]


def _inlined_epilogue(workload: Workload) -> list[Call]:
    """What follows the sums of a layer and their bias, done where the result is stored."""
    optional = {"factor": "multiplied", "shift": "shifted"}
    stages = [stage for name, stage in optional.items() if workload.tensor(name) is not None]
    both = ["raised_data", "joined_data"] if workload.planes > 1 < workload.data_planes else []
    planes = [*both, *(["raised", "joined"] if workload.is_in_planes else [])]
    first = ["shifted_first"] if workload.first_shift else []
    out = ["zero", "copied", "rounded", "high"] if workload.out_planes > 1 else []
    every = (*planes, *first, *stages, "lower", "upper", *out)
    return [("compute_inline", stage) for stage in every]


def _products(workload: Workload) -> int:
    """Multiplications of a convolution."""
    *_, ci, kernel_h, kernel_w, _, lanes = workload.inputs[1].shape
    outputs = workload.outputs[0].nbytes // workload.out_planes
    products = workload.planes * workload.data_planes
    return outputs * ci * kernel_h * kernel_w * lanes * products


def _pixels(width: int, most: int) -> int:
    """How many pixels of a row are computed together: a divisor of the width."""
    return max(p for p in range(1, most + 1) if width % p == 0)


def _rows_nbytes(workload: Workload) -> int:
    """Of the padded rows that one row of the output reads."""
    *_, ci, _, width, batch, block = workload.inputs[0].shape
    _, left, _, right = workload.attr_ints("pad")
    dilation = dict(workload.attrs).get("dilation", (1, 1))
    assert isinstance(dilation, tuple)
    rows = (workload.inputs[1].shape[-4] - 1) * dilation[0] + 1
    return workload.data_planes * ci * rows * (width + left + right) * batch * block


_RULES: Final[Mapping[str, Callable[[Workload, Target], Trace]]] = {
    "quantize": _quantize,
    "quantize_windows": _quantize_windows,
    "conv2d": _conv2d,
    "conv2d_transpose": _conv2d,
    "matmul": _matmul,
    "dense": _dense,
    "quantize_linear": _to_blocks,
    "dynamic_quantize_linear": _to_blocks,
    "dequantize_linear": _from_blocks,
    "relayout": _relayout,
    **REAL_RULES,
}
