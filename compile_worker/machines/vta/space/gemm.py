"""Tensorize: the loops of one GEMM instruction in order, its micro-ops, its accumulator distance.

Each plane of weights, and of data, has an instruction of its own: `gemm_keys` and `gemm_uops` are
of one of them.
Fires on a multiplication whose innermost loops are the accelerator's lanes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step

from compile_worker.draft import Draft
from compile_worker.ir.annotations import HOST
from compile_worker.machines.vta import limits
from compile_worker.machines.vta.space.layer import LOOPS, REDUCED, SPATIAL, GemmLayer
from compile_worker.machines.vta.space.loop_orders import (
    MICRO_ORDERS,
    distinct_micro_orders,
    long_loops,
)
from compile_worker.schedule.marks import annotate_step

AXES = (*REDUCED, *SPATIAL)
FOLDED = 2
"""Loops that a GEMM or ALU instruction runs by itself; the others are written out as micro-ops."""


def declare_gemm(draft: Draft, layer: GemmLayer, target: Target) -> None:
    """micro_order; gemm_uops of one slot combination; distance."""
    del layer
    names = [" ".join(order) for order in MICRO_ORDERS]
    draft.tunable("micro_order", range(len(MICRO_ORDERS)), names)
    draft.constant("one", 1)
    draft.constant("never", limits.NEVER)
    draft.constant("least_distance", target.limits.acc_distance)
    unfolded = ["gemm_third", "gemm_fourth", "gemm_fifth", "gemm_sixth"]
    draft.table(
        "canonical_micro_order",
        ["micro_order", *(f"long_{axis}" for axis in AXES)],
        [*unfolded, "inside_reductions"],
        _micro_rows(),
        why="two orders that differ in loops of one only are the same",
    )
    lengths = [f"tile_{axis}" for axis in AXES]
    written = [draft.select(f"{name}_uops", name, [*lengths, "one"]) for name in unfolded]
    draft.prod("gemm_uops", *written, why="the two outermost loops fold into the instruction")
    keep_writes_apart(draft, "inside_reductions")


def keep_writes_apart(draft: Draft, inside: str) -> None:
    """distance: micro-ops between two writes of one accumulator, by what the last sum encloses.

    `inside` tells which tiles that is: all, ow, co, oh x ow, or none because nothing is summed.
    `never` and `least_distance` are declared before.
    """
    draft.prod("tile_pixels", "tile_oh", "tile_ow")
    enclosed = ["tile_vectors", "tile_ow", "tile_co", "tile_pixels", "never"]
    draft.select("distance", inside, enclosed)
    draft.at_most(
        "acc_distance",
        "least_distance",
        "distance",
        why="the pipeline needs that many micro-ops between two writes of one accumulator",
    )


def gemm_steps(layer: GemmLayer, point: Point) -> Iterator[Step]:
    """Put the loops inside one instruction in order and hand them to it."""
    stage, reduced = layer.stage, layer.reduced
    order = [axis for axis in MICRO_ORDERS[point["micro_order"]] if axis in layer.axes]
    inner = [f"{stage}_{LOOPS[axis]}{'_1' * (axis in reduced)}" for axis in order]
    outer = [f"{stage}_{axis}_0" for axis in reduced]
    single = [f"{stage}_{axis}" for axis in (*layer.around, *layer.phases)]
    planes = [f"{stage}_{axis}" for axis in layer.epilogue.plane_axes]
    lanes = [f"{stage}_{lane}" for lane in ("b", "o", "i")]
    yield Step("reorder", (*outer, *single, *planes, *inner, *lanes))
    for loop in planes:
        yield annotate_step(HOST, loop, 1)
    yield Step("tensorize", (stage, "gemm"))


def _micro_rows() -> Iterator[tuple[int, ...]]:
    """(order, long flags, positions in AXES of loops three to six, what runs inside).

    len(AXES) stands for no loop. `inside` tells which tiles the last reduction loop encloses: an
    accumulator is written again after as many micro-ops.
    """
    none = len(AXES)
    for order, flags in distinct_micro_orders():
        loops = long_loops(MICRO_ORDERS[order], dict(zip(AXES, flags, strict=True)))
        written = [AXES.index(axis) for axis in loops[FOLDED:]]
        yield (order, *flags, *written, *[none] * (4 - len(written)), _inside(order, loops))


def _inside(order: int, loops: tuple[str, ...]) -> int:
    """Position among (all, ow, co, oh x ow, never) of what runs inside the last reduction loop."""
    if not any(axis in REDUCED for axis in loops):
        return 4
    full = MICRO_ORDERS[order]
    last = max(full.index(axis) for axis in REDUCED)
    return [SPATIAL, ("ow",), ("co",), ("oh", "ow")].index(full[last + 1 :])
