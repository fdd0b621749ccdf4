"""Multi-level tiling: tile sizes of every axis and the order of the loops over tiles.

Fires on a stage that reuses its operands. The output's loops are cut into tiles, all that leads
to it from the multiplication on is computed per tile, and the reductions are cut into steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step

from compile_worker.draft import Draft
from compile_worker.machines.vta.space.layer import LOOPS, REDUCED, SPATIAL, GemmLayer
from compile_worker.machines.vta.space.loop_orders import TILE_ORDERS, distinct_tile_orders


def declare_tiling(draft: Draft, layer: GemmLayer, target: Target) -> None:
    """tile_*, tile_order; trips_* (tiles of an axis), long_* (tile > 1), many_* (trips > 1).

    `sums` is how many accumulators an output vector has: planes of weights or data are summed one
    after the other, unless the reduction is cut into steps. Where both are planes, only the data's.
    """
    del target
    for axis in (*SPATIAL, *REDUCED):
        cut_axis(draft, axis, layer.extents[axis], divisors(layer.tiled(axis)))
    order_tiles(draft)
    draft.table(
        "steps_many",
        [f"many_{axis}" for axis in REDUCED],
        ["many_reduced"],
        ((a, b, c, a | b | c) for a in (0, 1) for b in (0, 1) for c in (0, 1)),
    )
    if layer.epilogue.plane_axes:
        least = layer.products // 2
        rows = ((0, least), (1, layer.products))
        draft.table("sums_side_by_side", ["many_reduced"], ["sums"], rows)
    draft.prod("tiles", *(f"trips_{axis}" for axis in SPATIAL), coefficient=layer.batches)
    draft.prod("trips_reduced", *(f"trips_{axis}" for axis in REDUCED))
    draft.prod("steps", "tiles", "trips_reduced")
    draft.prod("tile_vectors", *(f"tile_{axis}" for axis in SPATIAL))
    if layer.epilogue.plane_axes:
        draft.prod("tile_sums", "tile_vectors", "sums")


def cut_axis(draft: Draft, axis: str, extent: int, choices: Sequence[int]) -> None:
    """tile_, trips_, long_ and many_ of one axis, whose tiles have one of the given sizes."""
    draft.tunable(f"tile_{axis}", choices)
    draft.table(
        f"prod_{axis}",
        [f"tile_{axis}"],
        [f"trips_{axis}", f"long_{axis}", f"many_{axis}"],
        ((t, extent // t, int(t > 1), int(t < extent)) for t in choices),
        why=f"tiles of {axis} divide its {extent} evenly",
    )


def order_tiles(draft: Draft) -> None:
    """tile_order: how the loops over tiles of SPATIAL nest."""
    draft.tunable("tile_order", range(len(TILE_ORDERS)), [" ".join(o) for o in TILE_ORDERS])
    draft.require_rows(
        "canonical_tile_order",
        ["tile_order", *(f"many_{axis}" for axis in SPATIAL)],
        distinct_tile_orders(),
        why="loops that run once can be anywhere",
    )


def tiling_steps(layer: GemmLayer, point: Point) -> Iterator[Step]:
    """Cut the output, and compute what follows the multiplication per tile."""
    for axis in layer.spatial:
        yield Step("split", (f"out_{LOOPS[axis]}", point[f"tile_{axis}"]))
    around = (f"out_{axis}" for axis in layer.around)
    outer = [loop for axis in _order(layer, point) for loop in layer.tile_loops(axis)]
    inner = (f"out_{LOOPS[axis]}_1" for axis in layer.spatial)
    planes = ["out_plane"] if layer.epilogue.out_planes > 1 else []
    yield Step("reorder", (*around, *outer, *planes, *inner))
    before = layer.epilogue.before_biases
    for stage in layer.epilogue.stages:
        if stage not in before:
            yield Step("compute_at", (stage, outer[-1]))


def step_steps(layer: GemmLayer, point: Point) -> Iterator[Step]:
    """Multiply per tile, and cut the reductions into steps.

    What reads a stage is moved before it, so this comes behind the loads of biases.
    """
    for stage in (*layer.epilogue.before_biases, layer.stage):
        yield Step("compute_at", (stage, tile_loop(layer, point)))
    for axis in layer.reduced:
        yield Step("split", (f"{layer.stage}_{axis}", point[f"tile_{axis}"]))


def tile_loop(layer: GemmLayer, point: Point, *axes: str) -> str:
    """The loop over tiles that is the innermost of the given axes, or of all of them."""
    order = [axis for axis in _order(layer, point) if axis in (axes or SPATIAL)]
    return layer.tile_loops(order[-1])[-1] if order else f"out_{layer.around[-1]}"


def tile_sums(layer: GemmLayer) -> str:
    """The variable that counts the accumulators of a tile."""
    return "tile_sums" if layer.epilogue.plane_axes else "tile_vectors"


def _order(layer: GemmLayer, point: Point) -> tuple[str, ...]:
    return tuple(axis for axis in TILE_ORDERS[point["tile_order"]] if axis in layer.spatial)


def divisors(extent: int) -> tuple[int, ...]:
    """Every divisor, smallest first."""
    return tuple(d for d in range(1, extent + 1) if extent % d == 0)
