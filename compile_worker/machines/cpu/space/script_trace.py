"""The schedule of a point of a script's space: the rules' steps in the order that they need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilefarm.space import Point
from tilefarm.trace import Step

from compile_worker.draft import Draft
from compile_worker.machines.cpu.space.script_context import (
    BEFORE,
    BLOCK,
    ScriptContext,
    ScriptRule,
    Steps,
)
from compile_worker.machines.cpu.space.script_dots import QUAD, quads_of
from compile_worker.machines.cpu.space.script_intrinsics import chosen_way, tile_steps
from compile_worker.machines.cpu.space.script_loads import copy_steps, load_steps
from compile_worker.machines.cpu.space.script_places import at, place_steps
from compile_worker.machines.cpu.space.script_stages import CACHE, Stage, names
from compile_worker.machines.cpu.space.script_tiling import WIDEST, tiled_loops, tiling_steps

_LEAST_LANES = 4


def declare_dots(draft: Draft, context: ScriptContext) -> None:
    """products: how many a lane adds up before the next block's; 1 for no dot products."""
    found = quads_of(context.stages.main) if context.stages.main is not None else None
    assert found is not None
    extent = found[2].extent
    sizes = [each for each in (QUAD, 2 * QUAD, 4 * QUAD) if extent % each == 0]
    draft.tunable("products", (1, *sizes))


def script_steps(
    context: ScriptContext, rules: Sequence[ScriptRule], point: Point
) -> Iterator[Step]:
    """The whole schedule; rules of a user's come last."""
    for steps in _TRACE:
        yield from steps(context, point)
    for rule in rules:
        if not rule.unmet(context):
            yield from rule.steps(context, point)


def _cache_steps(context: ScriptContext, point: Point) -> Iterator[Step]:
    del point
    if context.stages.has_cache:
        yield Step("cache_write", (context.stages.out.name, CACHE))


def _simplifying_steps(context: ScriptContext, point: Point) -> Iterator[Step]:
    del point
    yield from context.simplified


def _inline_steps(context: ScriptContext, point: Point) -> Iterator[Step]:
    del point
    for name in context.inlined:
        yield Step("compute_inline", (name,))


def _order_steps(context: ScriptContext, point: Point) -> Iterator[Step]:
    """Sums side by side: reductions are outside, and vectors run along the axis of lanes."""
    for stage in context.stages.stages:
        if stage is context.stages.main:
            yield from _main_steps(context, stage, point)
        elif point.get(f"turned_{stage.name}"):
            others, inner = _spatial(context, stage, point)
            yield Step("reorder", (*names(stage.reduced), *others, *inner))


def _main_steps(context: ScriptContext, stage: Stage, point: Point) -> Iterator[Step]:
    """The order of a block's sums; loops that are short are written out."""
    if (chosen := chosen_way(context, point)) is not None:
        yield from tile_steps(context, stage, *chosen)
        return
    others, lanes = _spatial(context, stage, point)
    reduced, inner = [*names(stage.reduced)], lanes
    products = point.get("products", 1)
    if products > 1:
        quads, (lane,), vector = reduced.pop(), inner, context.isa.lanes
        yield Step("split", (quads, products))
        if _lane_extent(context, point, point[at(stage)]) % vector == 0:
            yield Step("split", (lane, vector))
            others, lane = [*others, f"{lane}_0"], f"{lane}_1"
        reduced, inner = [*reduced, f"{quads}_0"], [f"{quads}_1", lane]
    loops = (*reduced, *others, *inner)
    if len(loops) > 1:
        yield Step("reorder", loops)
    if point[at(stage)] != BLOCK:
        return
    for name in others:
        yield Step("unroll", (name,))
    if lanes and products == 1 and _is_vector(context, point):
        yield Step("vectorize", (lanes[0],))


def _spatial(context: ScriptContext, stage: Stage, point: Point) -> tuple[list[str], list[str]]:
    """The spatial loops of a stage, and that one of them which vectors run along, if any."""
    numbers = [context.regions.axis_of(loop.var) for loop in stage.spatial]
    loops = [*names(stage.spatial)]
    if not loops:
        return [], []
    lane = loops.pop(numbers.index(point["lanes"]) if point["lanes"] in numbers else -1)
    return loops, [lane]


def _lane_extent(context: ScriptContext, point: Point, level: int) -> int:
    """How long the axis of lanes is for what is computed at a level."""
    axis = point["lanes"]
    if level == BEFORE:
        return context.stages.axes[axis].extent
    return point[context.size(level, axis)]


def _is_vector(context: ScriptContext, point: Point) -> bool:
    """Whether a block is one vector along its lanes; others are left to the pass that cuts them."""
    lanes = _lane_extent(context, point, BLOCK)
    return _LEAST_LANES <= lanes <= WIDEST and lanes.bit_count() == 1


def _block_steps(context: ScriptContext, point: Point) -> Iterator[Step]:
    """What is in a block is written out, but for its lanes; threads share the outermost loop."""
    tiles, _, inner = tiled_loops(context, point)
    for loop in inner[:-1]:
        yield Step("unroll", (loop,))
    if point["shared"]:
        yield Step("parallel", (tiles[0],))


_TRACE: Sequence[Steps] = (
    _simplifying_steps,
    _inline_steps,
    _cache_steps,
    copy_steps,
    tiling_steps,
    place_steps,
    load_steps,
    _order_steps,
    _block_steps,
)
