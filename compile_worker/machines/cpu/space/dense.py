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
from compile_worker.isa import isa_of
from compile_worker.machines.cpu.space.windows import (
    STACK,
    declare_shared,
    declare_sums,
    declare_tiles,
    divisors,
    first_valid,
    is_padded,
    is_wide,
    most_first,
    padded_row_nbytes,
    shared_step,
    sums_in_registers,
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
    """The space of a dense layer of several pixels; its default has the largest block of sums."""
    draft, isa = Draft(), isa_of(target.host)
    width = workload.outputs[0].shape[3]
    groups = groups_of(workload)
    blocks = workload.outputs[0].shape[1] // groups
    declare_sums(draft, workload, target, blocks)
    draft.tunable("columns", divisors(width, width))
    tiles = product(draft.domain("pixels"), draft.domain("columns"))
    whole = [(pixels, columns) for pixels, columns in tiles if columns % pixels == 0]
    draft.require_rows("whole_blocks", ("pixels", "columns"), whole, why="a tile is whole blocks")
    draft.tunable("order", range(len(_ORDERS)), _ORDERS)
    most = isa.registers * isa.lanes // workload.outputs[0].shape[-1]
    if is_wide(workload):
        most //= 2  # weights that are widened take registers too
        pixel = workload.inputs[1].shape[1] * padded_row_nbytes(workload) // width
        draft.prod("tile_nbytes", "columns", coefficient=pixel)
        draft.at_most("stack", "tile_nbytes", LOCAL_NBYTES, why=STACK)
    declare_tiles(draft, "column_tiles", "columns", width)
    declare_tiles(draft, "block_tiles", "blocks", blocks)
    draft.constant("groups", groups)
    outermost = ("groups", "groups") if groups > 1 else ("column_tiles", "block_tiles")
    declare_shared(draft, workload, target, outermost)
    space = draft.space(workload.operator, VERSION, first_valid(draft, _wished(draft, most)))
    return Generated(space, partial(_steps, workload))


def _wished(draft: Draft, most: int) -> Iterator[dict[str, int]]:
    """Points from the one that is best as a rule: blocks of at most so many pixels first."""
    blocks = most_first(draft, "pixels", "blocks")
    blocks.sort(key=lambda block: block["pixels"] * block["blocks"] > most)
    shares, columns = draft.domain("shared")[::-1], draft.domain("columns")[::-1]
    for shared, block, width, order in product(shares, blocks, columns, draft.domain("order")):
        yield {**block, "columns": width, "order": order, "shared": shared}


def _steps(workload: Workload, point: Point) -> Iterator[Step]:
    """The schedule of a point."""
    outer = ("out_w_0", "out_co_0") if point["order"] == 0 else ("out_co_0", "out_w_0")
    yield Step("split", ("out_co", point["blocks"]))
    yield Step("split", ("out_w", point["columns"]))
    yield Step("split", ("out_w_1", point["pixels"]))
    yield Step("reorder", (*outer, "out_w_1_0", "out_w_1_1", "out_co_1"))
    has_zeros = workload.tensor("weight_zero") is not None
    yield from sums_in_registers("out_w_1_0", "out_w_1_1", "q", has_zeros=has_zeros)
    if is_wide(workload):
        yield Step("compute_at", ("wide", "out_w_0"))
    yield from shared_step(workload, point, "out_g" if point["groups"] > 1 else outer[0])
