"""The space of a dense layer of 8 bits: a `qlinear_conv2d` of one row, and of one tap.

    for tiles of pixels: for blocks of channels: for pixels: sums stay in registers

Weights are read once for each tile. Where they come in pairs, the tile's data are int16 before.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    has_matrices,
    matrices_first,
    sums_of_convolution,
)
from compile_worker.machines.cpu.space.windows import (
    STACK,
    best_blocks,
    cut,
    declare_block,
    declare_shared,
    declare_tiles,
    first_valid,
    is_padded,
    is_tile,
    is_wide,
    padded_row_nbytes,
    shared_step,
    sums_in_registers,
    tall_tiles,
)
from compile_worker.passes.flatten import LOCAL_NBYTES
from compile_worker.te.operators.groups import groups_of

VERSION: Final = 1
"""Changes when the points of old records would mean other schedules."""

_ORDERS: Final = ("pixels outside", "channels outside")


def is_dense(workload: Workload) -> bool:
    """Whether a `qlinear_conv2d` multiplies rows of channels by a matrix, and nothing else."""
    _, _, height, width, _, lanes = workload.inputs[0].shape
    one_tap = workload.inputs[1].shape[2:4] == (1, 1) and workload.attr_ints("stride")[1] == 1
    return height == 1 and width > 1 and lanes > 1 and one_tap and not is_padded(workload)


def dense_space(workload: Workload, target: Target) -> Generated:
    """The space of a dense layer of several pixels; its default has few sums, of many pixels."""
    draft = Draft()
    *_, width, _, lanes = workload.outputs[0].shape
    groups = groups_of(workload)
    blocks = workload.outputs[0].shape[1] // groups
    declare_block(draft, target, lanes, tall_tiles(width), blocks)
    declare_matrices(draft, target, workload.inputs[1].shape[-1])
    draft.tunable("columns", tall_tiles(width))
    both = product(draft.domain("pixels"), draft.domain("columns"))
    whole = [(pixels, columns) for pixels, columns in both if is_tile(columns, pixels)]
    draft.require_rows("whole_blocks", ("pixels", "columns"), whole, why="blocks fill a tile")
    draft.tunable("order", range(len(_ORDERS)), _ORDERS)
    if is_wide(workload):
        pixel = workload.inputs[1].shape[1] * padded_row_nbytes(workload) // width
        draft.prod("tile_nbytes", "columns", coefficient=pixel)
        draft.at_most("stack", "tile_nbytes", LOCAL_NBYTES, why=STACK)
    declare_tiles(draft, "column_tiles", "columns", width)
    declare_tiles(draft, "block_tiles", "blocks", blocks)
    draft.constant("groups", groups)
    outermost = ("groups", "groups") if groups > 1 else ("column_tiles", "block_tiles")
    declare_shared(draft, workload, target, outermost)
    _declare_stores(draft, width)
    liked = best_blocks(draft, workload, target, "columns")
    space = draft.space(workload.operator, VERSION, first_valid(draft, _wished(draft, liked)))
    return Generated(space, partial(_steps, workload))


def _declare_stores(draft: Draft, width: int) -> None:
    """Tiles of pixels that threads share do not overlap: no two threads store the same."""
    names = ("columns", "order", "shared")
    rows = product(*map(draft.domain, names))
    apart = [(c, order, shared) for c, order, shared in rows if order or not (shared and width % c)]
    draft.require_rows("stores", names, apart, why="no two threads store the same")


def _wished(draft: Draft, blocks: list[dict[str, int]]) -> Iterator[dict[str, int]]:
    """Points from the one that is best as a rule: shared."""
    shares = draft.domain("shared")[::-1]
    firsts = product(shares, matrices_first(draft), blocks, draft.domain("order"))
    for shared, matrices, block, order in firsts:
        yield {**block, **matrices, "order": order, "shared": shared}


def _steps(workload: Workload, point: Point) -> Iterator[Step]:
    """The schedule of a point."""
    outer = ("out_w_0", "out_co_0") if point["order"] == 0 else ("out_co_0", "out_w_0")
    yield Step("split", ("out_co", point["blocks"]))
    yield cut("out_w", workload.outputs[0].shape[3], point["columns"])
    yield cut("out_w_1", point["columns"], point["pixels"])
    yield Step("reorder", (*outer, "out_w_1_0", "out_w_1_1", "out_co_1"))
    has_zeros = workload.tensor("weight_zero") is not None
    axis = 4 if point["groups"] > 1 else 3
    matrices = sums_of_convolution(axis, "q") if has_matrices(point) else ()
    yield from sums_in_registers(
        "out_w_1_0", "out_w_1_1", "q", has_zeros=has_zeros, matrices=matrices
    )
    if is_wide(workload):
        yield Step("compute_at", ("wide", "out_w_0"))
    yield from shared_step(workload, point, "out_g" if point["groups"] > 1 else outer[0])
