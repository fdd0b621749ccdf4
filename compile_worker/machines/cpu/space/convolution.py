"""The space of `qlinear_conv2d`: register block, rows of a tile, padding, what goes outside,
and whether threads share that.

    for rows of the output: for blocks of channels: for rows: for pixels:
      sums of `pixels` x `blocks` vectors stay in registers over the whole reduction

Each step of the reduction loads `blocks` vectors of weights, and a quad of data for each pixel.
What is padded is copied to the stack: all channels of a tile, or a block of them before its step.
Where zeros are around the image, nothing is: taps that see them are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Final

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step
from tilefarm.workload import Workload

from compile_worker.draft import Draft
from compile_worker.generated import Generated
from compile_worker.machines.cpu.space.matrices import (
    declare_matrices,
    declare_whole_matrices,
    has_matrices,
    matrices_first,
    sums_of_convolution,
)
from compile_worker.machines.cpu.space.windows import (
    ORDERS,
    SKIPPED,
    STACK,
    best_blocks,
    copy_at,
    cut,
    declare_rows,
    declare_shared,
    declare_sums,
    declare_tiles,
    first_valid,
    is_padded,
    is_wide,
    padded_row_nbytes,
    shared_step,
    sums_in_registers,
)
from compile_worker.passes.flatten import LOCAL_NBYTES
from compile_worker.te.operators.groups import groups_of

VERSION: Final = 1
"""Changes when the points of old records would mean other schedules."""

_PADDINGS: Final = ("by tile", "by step", "skipped")


def convolution_space(workload: Workload, target: Target) -> Generated:
    """The space of a convolution; its default is the block that is best as a rule."""
    return space_with_steps(workload, target, _steps)


def space_with_steps(
    workload: Workload, target: Target, steps: Callable[[Workload, str, Point], Iterator[Step]]
) -> Generated:
    """As `convolution_space`, with other steps for what is copied, if anything is, and a point."""
    draft, groups = Draft(), groups_of(workload)
    blocks = workload.outputs[0].shape[1] // groups
    declare_sums(draft, workload, target, blocks)
    declare_rows(draft, workload, kernel_h=workload.inputs[1].shape[2])
    draft.tunable("order", range(len(ORDERS)), ORDERS)
    copy = "wide" if is_wide(workload) else "padded" if is_padded(workload) else ""
    if copy:
        _declare_padding(draft, workload)
    declare_matrices(draft, target, workload.inputs[1].shape[-1])
    declare_whole_matrices(draft, workload)
    declare_tiles(draft, "row_tiles", "rows", workload.outputs[0].shape[2])
    declare_tiles(draft, "block_tiles", "blocks", blocks)
    draft.constant("groups", groups)
    outermost = ("groups", "groups") if groups > 1 else ("row_tiles", "block_tiles")
    declare_shared(draft, workload, target, outermost)
    liked = best_blocks(draft, workload, target)
    default = first_valid(draft, _wished(draft, liked))
    space = draft.space(workload.operator, VERSION, default)
    return Generated(space, partial(steps, workload, copy))


def _declare_padding(draft: Draft, workload: Workload) -> None:
    """Where the image is padded, and that it fits the stack there.

    What a zero point of weights adds is summed beside the steps, so nothing is padded within one.
    """
    batch, blocks = workload.inputs[0].shape[0], workload.inputs[1].shape[1]
    row = padded_row_nbytes(workload)
    by_step = _PADDINGS if _may_skip(workload) else _PADDINGS[:SKIPPED]
    paddings = by_step if workload.tensor("weight_zero") is None else _PADDINGS[:1]
    draft.tunable("padding", range(len(paddings)), paddings)
    draft.prod("tile_nbytes", "input_rows", coefficient=batch * blocks * row)
    draft.constant("step_nbytes", 0)
    nbytes = ("tile_nbytes", "step_nbytes", "step_nbytes")
    draft.select("padded_nbytes", "padding", nbytes[: len(paddings)])
    draft.at_most("stack", "padded_nbytes", LOCAL_NBYTES, why=STACK)


def _may_skip(workload: Workload) -> bool:
    """Whether what is around the image adds nothing, and pixels are vectors of channels."""
    zeros = workload.attr_int("fill") == 0
    return zeros and not is_wide(workload) and workload.inputs[0].shape[-1] > 1


def _wished(draft: Draft, blocks: list[dict[str, int]]) -> Iterator[dict[str, int]]:
    """Points from the one that is best as a rule: shared, nothing copied, tall tiles."""
    paddings = draft.domain("padding") if draft.has("padding") else (0,)
    for shared, matrices, padding, block, rows, order in product(
        reversed(draft.domain("shared")),
        matrices_first(draft),
        sorted(paddings, key=lambda each: each != SKIPPED),
        blocks,
        reversed(draft.domain("rows")),
        draft.domain("order"),
    ):
        chosen = {"rows": rows, "order": order, "padding": padding, "shared": shared}
        yield {**block, **matrices, **chosen}


def _steps(workload: Workload, copy: str, point: Point) -> Iterator[Step]:
    """The schedule of a point."""
    outer = ("out_h_0", "out_co_0") if point["order"] == 0 else ("out_co_0", "out_h_0")
    yield Step("split", ("out_co", point["blocks"]))
    yield cut("out_w", workload.outputs[0].shape[3], point["pixels"])
    yield Step("split", ("out_h", point["rows"]))
    yield Step("reorder", (*outer, "out_h_1", "out_w_0", "out_w_1", "out_co_1"))
    has_zeros = workload.tensor("weight_zero") is not None
    axis = 4 if point["groups"] > 1 else 3
    matrices = sums_of_convolution(axis, "q") if has_matrices(point) else ()
    yield from sums_in_registers("out_w_0", "out_w_1", "q", has_zeros=has_zeros, matrices=matrices)
    yield from copy_at(copy, point)
    yield from shared_step(workload, point, "out_g" if point["groups"] > 1 else outer[0])
