"""The space of `qlinear_conv2d_transpose`: that of the convolution of one of its phases.

    for rows of a phase: for blocks of channels: for phases: for rows: for pixels of a phase: sums

The image that all phases see is padded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step
from tilefarm.workload import Workload

from compile_worker.generated import Generated
from compile_worker.machines.cpu.space.convolution import space_with_steps
from compile_worker.machines.cpu.space.matrices import has_matrices, sums_of_convolution
from compile_worker.machines.cpu.space.windows import copy_at, cut, shared_step, sums_in_registers


def transposed_space(workload: Workload, target: Target) -> Generated:
    """The space of a transposed convolution; its default is that of a phase."""
    return space_with_steps(phase_of(workload), target, _steps)


def phase_of(workload: Workload) -> Workload:
    """The convolution of one phase, under the name of the workload's operator."""
    data, weight, *channels = workload.inputs
    (out,) = workload.outputs
    n, co, height, width, *lanes = out.shape
    blocks, down, across, *taps = weight.shape
    attrs = {**dict(workload.attrs), "stride": (1, 1), "dilation": (1, 1)}
    return replace(
        workload,
        inputs=(data, replace(weight, shape=(blocks, *taps)), *channels),
        outputs=(replace(out, shape=(n, co, height // down, width // across, *lanes)),),
        attrs=tuple(attrs.items()),
    )


def _steps(workload: Workload, copy: str, point: Point) -> Iterator[Step]:
    """The schedule of a point."""
    tiles = ("out_h_0", "out_co_0") if point["order"] == 0 else ("out_co_0", "out_h_0")
    yield Step("split", ("out_co", point["blocks"]))
    yield cut("out_w", workload.outputs[0].shape[3], point["pixels"])
    yield Step("split", ("out_h", point["rows"]))
    phases = ("out_p", "out_q")
    yield Step("reorder", (*tiles, *phases, "out_h_1", "out_w_0", "out_w_1", "out_co_1"))
    matrices = sums_of_convolution(4, "i") if has_matrices(point) else ()
    yield from sums_in_registers("out_w_0", "out_w_1", "i", matrices=matrices)
    yield from copy_at(copy, point)
    yield from shared_step(workload, point, tiles[0])
