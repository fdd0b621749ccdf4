"""Multi-level tiling: tile sizes of every axis and the order of the loops over tiles.

Fires on a stage that reuses its operands. The output's loops are cut into tiles, all that leads
to it from the multiplication on is computed per tile, and the reductions are cut into steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step

from compile_worker.space.constraints import Draft
from compile_worker.space.layer import REDUCED, SPATIAL, Layer
from compile_worker.space.loop_orders import TILE_ORDERS, distinct_tile_orders

OUTPUT_LOOPS: Final = {"co": "out_co", "oh": "out_h", "ow": "out_w"}
ELEMENTWISE: Final = ("upper", "lower", "shifted", "biased")
"""Stages between the multiplication and the output, the last one first."""


def declare_tiling(draft: Draft, layer: Layer, target: Target) -> None:
    """tile_*, tile_order; trips_* (tiles of an axis), long_* (tile > 1), many_* (trips > 1)."""
    del target
    for axis in (*SPATIAL, *REDUCED):
        extent = layer.extents[axis]
        draft.tunable(f"tile_{axis}", divisors(extent))
        draft.table(
            f"prod_{axis}",
            [f"tile_{axis}"],
            [f"trips_{axis}", f"long_{axis}", f"many_{axis}"],
            ((t, extent // t, int(t > 1), int(t < extent)) for t in divisors(extent)),
            why=f"tiles of {axis} divide its {extent} evenly",
        )
    many = [f"many_{axis}" for axis in SPATIAL]
    draft.tunable("tile_order", range(len(TILE_ORDERS)), [" ".join(o) for o in TILE_ORDERS])
    draft.require_rows(
        "canonical_tile_order",
        ["tile_order", *many],
        distinct_tile_orders(),
        why="loops that run once can be anywhere",
    )
    draft.table(
        "steps_many",
        [f"many_{axis}" for axis in REDUCED],
        ["many_reduced"],
        ((a, b, c, a | b | c) for a in (0, 1) for b in (0, 1) for c in (0, 1)),
    )
    draft.prod("tiles", *(f"trips_{axis}" for axis in SPATIAL), coefficient=layer.batches)
    draft.prod("trips_reduced", *(f"trips_{axis}" for axis in REDUCED))
    draft.prod("steps", "tiles", "trips_reduced")
    draft.prod("tile_vectors", *(f"tile_{axis}" for axis in SPATIAL))


def tiling_steps(layer: Layer, point: Point) -> Iterator[Step]:
    """Cut the output, compute what leads to it per tile, cut the reductions."""
    axes = [axis for axis in SPATIAL if layer.has_window or axis == "co"]
    loops = {axis: OUTPUT_LOOPS[axis] for axis in axes}
    for axis, loop in loops.items():
        yield Step("split", (loop, point[f"tile_{axis}"]))
    order = [axis for axis in TILE_ORDERS[point["tile_order"]] if axis in loops]
    outer = [f"{loops[axis]}_0" for axis in order]
    yield Step("reorder", ("out_n", *outer, *(f"{loop}_1" for loop in loops.values())))
    for stage in (*ELEMENTWISE, layer.stage):
        yield Step("compute_at", (stage, outer[-1]))
    for axis in reduced_axes(layer):
        yield Step("split", (f"{layer.stage}_{axis}", point[f"tile_{axis}"]))


def tile_loop(layer: Layer, point: Point, *axes: str) -> str:
    """The loop over tiles that is the innermost of the given axes, or of all of them."""
    wanted = axes or SPATIAL
    order = [axis for axis in TILE_ORDERS[point["tile_order"]] if axis in wanted]
    if not layer.has_window:
        order = [axis for axis in order if axis == "co"]
    return f"{OUTPUT_LOOPS[order[-1]]}_0" if order else "out_n"


def reduced_axes(layer: Layer) -> tuple[str, ...]:
    """The reduction axes that the nest has, outermost first."""
    return REDUCED if layer.has_window else REDUCED[:1]


def divisors(extent: int) -> tuple[int, ...]:
    """Every divisor, smallest first."""
    return tuple(d for d in range(1, extent + 1) if extent % d == 0)
