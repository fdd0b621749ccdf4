"""What a schedule of an addition or of pooling is estimated to take, from what overlaps with what.

As `estimate.py` has it, with one load for each step and nothing else: before a tile's first
multiplication of an image its load has to be there, after the last one of a tile with one slot the
next load begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from tilefarm.target import Target

from compile_worker.draft import Draft
from compile_worker.machines.vta.costs import Costs, costs_of
from compile_worker.machines.vta.space.estimate import (
    declare_fetch,
    declare_steps,
    declare_total,
    declare_waits,
)
from compile_worker.machines.vta.space.layer import SPATIAL
from compile_worker.machines.vta.space.vector_layer import VectorLayer, VectorStage
from compile_worker.machines.vta.tile_stores import CutEnd, LastStage, TileEnd, foreseen


def vectors_of(stage: VectorStage) -> str:
    """The variable that holds how many vectors a tile of a stage has."""
    return f"vectors_{stage.more[0]}_{stage.more[1]}"


def starts_of(layer: VectorLayer) -> int:
    """Instructions of the compute module for every tile, those of a sum's steps apart."""
    resets = sum(stage.resets and stage.engine != "reset" for stage in layer.stages)
    return len(layer.stages) + resets - (layer.summing is not None) - layer.starts_rounded


def declare_vector_estimate(draft: Draft, layer: VectorLayer, target: Target) -> None:
    """The estimate, in quarters of a cycle; before it what it is made of, in cycles."""
    costs = costs_of(target)
    _loads(draft, layer, costs)
    _tile_ends(draft, layer, costs)
    _tile(draft, layer, costs)
    declare_steps(draft, {axis: layer.extents[axis] for axis in ("kh", "kw")})
    declare_waits(draft, target, bursts=False)
    _computing(draft, layer, costs)
    _kernels(draft, layer, costs)
    counts = {"tiles": starts_of(layer), "steps": 2, "inp_copies": 1, "out_copies": 1}
    draft.total("fetched", {**counts, "uop_kernels": 1}, constant=8)
    declare_fetch(draft, target)
    declare_total(draft, costs)


def _loads(draft: Draft, layer: VectorLayer, costs: Costs) -> None:
    """step_load: of all images of a step; cycles_loading and cycles_storing, of all."""
    count, load = len(layer.images), costs.load
    each = {"inp_elements": load.inp, "inp_pieces": load.latency * count}
    storing = {"out_copies": 2}
    if costs.row:
        _rows(draft, layer)
        each[draft.prod("inp_step_rows", "inp_pieces", "inp_copy_rows")] = costs.row * count
        storing["out_rows"] = costs.row
    draft.total("step_load", each)
    draft.prod("cycles_loading", "steps", "step_load")
    store = costs.store.element * layer.output_vectors
    draft.total("cycles_storing", storing, constant=store)


def _rows(draft: Draft, layer: VectorLayer) -> None:
    """Rows of each image's copy; rows of all stores. Copies that join channels have theirs."""
    windows = layer.windows
    keys = [f"tile_{axis}" for axis in ("oh", "kh")]
    sizes = product(*(draft.domain(key) for key in keys))
    rows = ((oh, kh, windows[0].loaded(oh, kh)) for oh, kh in sizes)
    draft.table("rows_loaded", keys, ["inp_window_rows"], rows)
    draft.select("inp_copy_rows", "inp_joined", ["inp_window_rows", "tile_co"])
    draft.select("out_copy_rows", "out_joined", ["tile_oh", "tile_co"])
    draft.prod("out_rows", "out_copies", "out_copy_rows")


def _tail(layer: VectorLayer) -> Sequence[VectorStage]:
    """The last operations on the results, which take turns with their store."""
    last = max(
        at
        for at, stage in enumerate(layer.stages)
        if stage.engine != "alu" or stage.root != layer.out.root
    )
    return layer.stages[last + 1 :]


def _tile_ends(draft: Draft, layer: VectorLayer, costs: Costs) -> None:
    """cycles_parts: what a tile takes because it is cut; cycles_last_store; end_kernels."""
    keys = [*(f"tile_{axis}" for axis in SPATIAL), "acc_slots"]
    draft.table(
        "tile_ends",
        keys,
        ["cycles_parts", "cycles_last_store", "end_kernels"],
        (
            (*tile, slots, *_cut(layer, costs, tile, slots).columns)
            for *tile, slots in product(*(draft.domain(name) for name in keys))
        ),
    )


def _cut(layer: VectorLayer, costs: Costs, tile: list[int], slots: int) -> CutEnd:
    co, oh, ow = tile
    elements, columns = prod(tile), layer.windows[1].out
    operations = tuple(LastStage(1, slots, costs.alu(each.cycles)) for each in _tail(layer))
    end = TileEnd(
        costs=costs,
        operations=operations,
        elements=elements,
        rows=co if ow == columns else co * oh,
        element_cycles=costs.store.element,
        turns=max(1, layer.output_vectors // elements),
        copies=slots,
    )
    return foreseen(end, costs.store.each_row)


def _tile(draft: Draft, layer: VectorLayer, costs: Costs) -> None:
    """cycles_reset, before images are needed; gemm_step, while they are; cycles_end, after that."""
    start, stages = costs.start, layer.stages
    if layer.summing:
        draft.prod("step_uops", "tile_vectors", "tile_kh", "tile_kw")
        draft.total("gemm_step", {"step_uops": 1, "sum_parts": start})
        resets = {} if layer.starts_rounded else {vectors_of(stages[0]): 1}
        draft.total("cycles_reset", resets, constant=start * len(resets))
        after = 1
    else:
        after = 1 + max(at for at, stage in enumerate(stages) if stage.image)
        middle = _cycles_of(stages[:after], costs)
        middle[vectors_of(stages[0])] -= 1
        starts = after - 1 + sum(stage.resets for stage in stages[:after])
        draft.total("gemm_step", middle, constant=start * starts)
        draft.total("cycles_reset", {vectors_of(stages[0]): 1}, constant=start)
    ends = _cycles_of(stages[after:], costs)
    starts = len(stages) - after
    if layer.starts_rounded and not layer.summing:
        ends[vectors_of(layer.out)] -= 1
        starts -= 1
    draft.total("cycles_end", {**ends, "cycles_parts": 1}, constant=start * starts)


def _cycles_of(stages: Sequence[VectorStage], costs: Costs) -> dict[str, int]:
    """Cycles of stages by the variable that counts their vectors, without what starts them."""
    each: dict[str, int] = {}
    for stage in stages:
        own = costs.alu(stage.cycles) if stage.engine == "alu" else stage.cycles
        each[vectors_of(stage)] = each.get(vectors_of(stage), 0) + own + stage.resets
    return each


def _computing(draft: Draft, layer: VectorLayer, costs: Costs) -> None:
    """cycles_computing, from the first load on; cycles_loading_first, up to the last tile's end."""
    factors = len(layer.tiles) * (costs.load.wgt + costs.load.latency)
    draft.total("first_load", {"step_load": 1}, constant=factors)
    draft.largest("cycles_begun", ["first_load", "cycles_reset"])
    draft.total("first_beyond", {"cycles_begun": 1, "cycles_reset": -1})
    draft.prod("all_ends", "tiles", "tile_end")
    draft.total("plain_tiles", {"tiles": 1}, constant=-1)
    draft.prod("waits_plain", "plain_tiles", "wait_plain")
    sums = ("first_beyond", "all_ends", "waits_plain", "wait_first")
    busy, constant = dict.fromkeys(sums, 1), 0
    if layer.summing:
        busy["sums"] = costs.start
        constant = layer.extents["kh"] * layer.extents["kw"] * layer.output_vectors
    else:
        busy[draft.prod("all_gemms", "tiles", "gemm_step")] = 1
    draft.total("cycles_computing", busy, constant=constant)
    draft.total("cycles_loading_first", {"cycles_loading": 1, "cycles_end": 1, "gemm_step": 1})


def _kernels(draft: Draft, layer: VectorLayer, costs: Costs) -> None:
    """uop_kernels, and what loading them takes: each place that a stage works in has others."""
    gemms = [stage.root == layer.out.root for stage in layer.stages if stage.engine == "gemm"]
    draft.prod("end_keys", "end_kernels", "acc_slots")
    elsewhere = {s.root for s in layer.stages if s.engine == "alu"} - {layer.out.root}
    again = len(_tail(layer)) if costs.loads_again else 1
    kernels = {"both_slots": sum(gemms), "slots": len(gemms) - sum(gemms), "end_keys": again}
    kernels = {name: count for name, count in kernels.items() if count}
    draft.total("uop_kernels", kernels, constant=len(elsewhere))
    draft.prod("cycles_uop_loads", "uop_kernels", coefficient=costs.uop_load)
