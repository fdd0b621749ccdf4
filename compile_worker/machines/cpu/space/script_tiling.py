"""Multi-level-Tiling of a script's last stage: tiles, blocks in them, vectors along one axis."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import isqrt
from typing import Final

from tilefarm.space import Point
from tilefarm.trace import Step

from compile_worker.draft import Draft
from compile_worker.machines.cpu.space.script_context import BLOCK, TILE, ScriptContext
from compile_worker.machines.cpu.space.script_dots import QUAD, row_lanes
from compile_worker.machines.cpu.space.windows import (
    SPARE,
    cut,
    is_tile,
    tile_sizes,
    tiles,
)

WIDEST: Final = 64
"""Lanes of a block, at most."""

_MOST_ROWS: Final = 8
"""Of a block, along any axis but the last two."""

_MOST_SIZES: Final = 12
"""Sizes of tiles along an axis that there are to choose from, at most."""

MANY: Final = 1 << 17
"""Innermost iterations that are worth a round of threads."""


def declare_tiling(draft: Draft, context: ScriptContext) -> None:
    """tile_*, block_*: their extents; lanes, outermost: axes; shared: by threads, or not."""
    axes, isa = context.stages.axes, context.isa
    for at, axis in enumerate(axes):
        tile, block = context.size(TILE, at), context.size(BLOCK, at)
        draft.tunable(tile, _tile_sizes(axis.extent, isa.lanes))
        is_row = context.stages.main is None and axis is axes[-1]
        sizes = block_sizes(context, at)
        draft.tunable(block, {*sizes, axis.extent} if is_row else sizes)
        pairs = product(draft.domain(tile), draft.domain(block))
        filled = [pair for pair in pairs if _fills(context, *pair)]
        draft.require_rows(f"filled_{axis.label}", (tile, block), filled, why="blocks fill a tile")
    lanes = lane_axes(context)
    draft.tunable("lanes", lanes, [axes[at].label for at in lanes])
    draft.tunable("outermost", range(len(axes)), [axis.label for axis in axes])
    draft.prod("block_size", *(context.size(BLOCK, at) for at in range(len(axes))))
    most = max(isa.registers - SPARE, 1) * isa.lanes
    if context.stages.main is None:
        why = "a block is written out, but for a row of it"
        draft.at_most("written_out", "block_size", max(most, 4 * axes[-1].extent), why=why)
    else:
        why = f"{isa.registers} vector registers hold a block, and {SPARE} of them operands"
        draft.at_most("registers", "block_size", most, why=why)
    _declare_threads(draft, context)


def _declare_threads(draft: Draft, context: ScriptContext) -> None:
    axes = context.stages.axes
    if context.threads == 1 or sum(each.work for each in context.stages.stages) < MANY:
        draft.constant("shared", 0)
        return
    draft.tunable("shared", (0, 1), ("one thread", "all threads"))
    numbers = range(len(axes))
    for at in numbers:
        _declare_count(draft, context, at)
    draft.select("whole_outermost", "outermost", [f"whole_{axes[at].label}" for at in numbers])
    draft.at_most("stores", "shared", "whole_outermost", why="no two threads store the same")
    draft.select("tiles_outermost", "outermost", [f"tiles_{axes[at].label}" for at in numbers])
    draft.prod("wanted_tiles", "shared", coefficient=context.threads)
    why = f"each of {context.threads} threads has a tile"
    draft.at_most("tiles_for_threads", "wanted_tiles", "tiles_outermost", why=why)


def _declare_count(draft: Draft, context: ScriptContext, at: int) -> None:
    """How many tiles an axis has, and whether they have nothing in common."""
    axis, tile = context.stages.axes[at], context.size(TILE, at)
    sizes = draft.domain(tile)
    rows = [(each, tiles(axis.extent, each), int(axis.extent % each == 0)) for each in sizes]
    names = (f"tiles_{axis.label}", f"whole_{axis.label}")
    draft.table(f"cut_{axis.label}", (tile,), names, rows)


def lane_axes(context: ScriptContext) -> list[int]:
    """Axes that vectors may run along: those of dot products, or any that is long enough."""
    axes, main = context.stages.axes, context.stages.main
    dots = row_lanes(main) if main is not None and context.isa.dot else []
    found = {context.regions.axis_of(var) for var in dots}
    wide = [at for at, axis in enumerate(axes) if axis.extent >= QUAD]
    return [at for at in range(len(axes)) if at in found] or wide or [len(axes) - 1]


def tiling_steps(context: ScriptContext, point: Point) -> Iterator[Step]:
    """Cut every axis twice: loops over tiles, over blocks in the order, and within a block."""
    for at, axis in enumerate(context.stages.axes):
        tile, block = (point[context.size(level, at)] for level in (TILE, BLOCK))
        yield cut(axis.loop, axis.extent, tile)
        yield cut(f"{axis.loop}_1", tile, block)
    around, blocks, inner = tiled_loops(context, point)
    yield Step("reorder", (*around, *blocks, *inner))


def tiled_loops(
    context: ScriptContext, point: Point
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The loops over tiles, over blocks of a tile, and inside of a block, outermost first."""
    loops = [axis.loop for axis in context.stages.axes]
    first, last = loops[point["outermost"]], loops[point["lanes"]]
    outer = [first, *(each for each in loops if each != first)]
    inner = [*(each for each in loops if each != last), last]
    return (
        tuple(f"{each}_0" for each in outer),
        tuple(f"{each}_1_0" for each in outer),
        tuple(f"{each}_1_1" for each in inner),
    )


def _fills(context: ScriptContext, tile: int, block: int) -> bool:
    """Whether blocks fill a tile; those that overlap store twice what nobody reads meanwhile."""
    return tile % block == 0 or (not context.stages.reads_itself and is_tile(tile, block))


def block_sizes(context: ScriptContext, at: int) -> list[int]:
    """Of a block along an axis: a few rows, or whole vectors, or everything."""
    axes, lanes = context.stages.axes, context.isa.lanes
    extent = axes[at].extent
    sizes = tile_sizes(extent, WIDEST if at >= len(axes) - 2 else _MOST_ROWS)
    return [each for each in sizes if each <= _MOST_ROWS or each % lanes == 0 or each == extent]


def _tile_sizes(extent: int, lanes: int) -> list[int]:
    """Divisors of an extent, and whole vectors in a few tiles; both ends among some of them."""
    small = [each for each in range(1, isqrt(extent) + 1) if extent % each == 0]
    counts = [1 << power for power in range(1, _MOST_SIZES)]
    vectors = {-(-extent // count // lanes) * lanes for count in counts if count < extent}
    whole = {each for each in vectors if each and is_tile(extent, each)}
    sizes = sorted({*small, *(extent // each for each in small), *whole})
    if len(sizes) <= _MOST_SIZES:
        return sizes
    step = (len(sizes) - 1) / (_MOST_SIZES - 1)
    return sorted({sizes[round(at * step)] for at in range(_MOST_SIZES)})
