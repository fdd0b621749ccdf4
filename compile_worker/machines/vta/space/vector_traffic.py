"""What a schedule of an addition or of pooling moves and does, in closed form."""

from __future__ import annotations

from itertools import product

from tilefarm.target import Target

from compile_worker.draft import Draft
from compile_worker.machines.vta import limits
from compile_worker.machines.vta.space.vector_estimate import declare_vector_estimate, starts_of
from compile_worker.machines.vta.space.vector_layer import VectorLayer


def declare_vector_traffic(draft: Draft, layer: VectorLayer, target: Target) -> None:
    """Copies, instructions, bytes, and cycles of each module; the estimate."""
    vta = target.geometry
    _copies(draft, layer)
    draft.prod("inp_moved", "inp_elements", "steps")
    draft.prod("inp_nbytes", "inp_moved", coefficient=vta.inp_nbytes)
    starts = starts_of(layer)
    sums = {"sums": 1} if layer.summing else {}
    if layer.summing:
        draft.prod("sums", "steps", "sum_parts")
    counts = {"inp_copies": 1, "out_copies": 1, "tiles": starts + 2, "steps": 2, "uops": 1, **sums}
    draft.total("instructions", counts, constant=8 + len(layer.tiles))
    most = limits.instruction_capacity()
    draft.at_most("insn_queue", "instructions", most, why=f"the queue holds {most} instructions")
    declare_vector_estimate(draft, layer, target)


def _copies(draft: Draft, layer: VectorLayer) -> None:
    """Copies of a step's images and of a tile's results: one for all channels where they join.

    They do if an instruction can go from one to the next.
    """
    rows, columns = layer.windows
    near, near_out = (
        limits.dma_fields_fit(1, 1, vectors, (0, 0, 0, 0)) is None
        for vectors in (rows.size * columns.size, rows.out * columns.out)
    )
    tiles, outputs = [], []
    pairs = [[f"tile_{o}", f"tile_{k}"] for o, k in (("oh", "kh"), ("ow", "kw"))]
    keys = [name for pair in pairs for name in pair]
    for oh, kh, ow, kw in product(*(draft.domain(name) for name in keys)):
        joined = rows.is_whole(oh, kh) or columns.is_whole(ow, kw)
        single = rows.loaded(oh, kh) == 1 and not rows.pads
        tiles.append((oh, kh, ow, kw, int(near and (joined or single))))
    for oh, ow in product(draft.domain("tile_oh"), draft.domain("tile_ow")):
        joined = oh in (1, rows.out) or ow == columns.out
        outputs.append((oh, ow, int(near_out and joined)))
    draft.table("copies_in", keys, ["inp_joined"], tiles)
    draft.table("copies_out", ["tile_oh", "tile_ow"], ["out_joined"], outputs)
    for name, turns, factor in (("inp", "steps", len(layer.images)), ("out", "tiles", 1)):
        draft.select(f"{name}_pieces", f"{name}_joined", ["tile_co", "one"])
        draft.prod(f"{name}_copies", turns, f"{name}_pieces", coefficient=factor)
