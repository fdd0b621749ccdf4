"""What a schedule of a layer that multiplies is estimated to take, from what overlaps with what.

    load     |B, step 0|step 1|step 2|             |B, step 0|step 1|
    compute            |gemm 0|gemm 1|gemm 2|end    reset|   |gemm 0| ...
                                                     store|

Loads are at most a step ahead: those of a step begin when the GEMM two steps before has let go of
its slot. So a tile takes the longest of three ways through it: its end and GEMMs with the loads in
between that are longer than these; all of its loads from the last GEMM of the tile before on, with
what is loaded once for several tiles (B); and, where loads are held, its end and all loads but one.
Without steps loads are as far ahead as tiles need. With one slot nothing but a tile's end overlaps.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Final

from tilefarm.space import ESTIMATE
from tilefarm.target import Target

from compile_worker.draft import Draft
from compile_worker.machines.vta.costs import Costs, costs_of
from compile_worker.machines.vta.space.copies import declare_rows, result_rows
from compile_worker.machines.vta.space.layer import (
    PLANES_OF_RESULTS,
    REDUCED,
    SPATIAL,
    GemmLayer,
)
from compile_worker.machines.vta.space.tiling import tile_sums
from compile_worker.machines.vta.tile_stores import CutEnd, LastStage, TileEnd, foreseen

FETCH: Final = 25
"""Cycles before the first instruction of a batch is there, beyond two for each of them."""


def declare_estimate(draft: Draft, layer: GemmLayer, target: Target) -> None:
    """The estimate, in quarters of a cycle; before it what it is made of, in cycles."""
    costs = costs_of(target)
    draft.constant("zero", 0)
    _loads(draft, layer, costs)
    _bursts(draft, layer, costs)
    _steps(draft, layer, costs)
    _tile_ends(draft, layer, costs)
    declare_waits(draft, target, bursts=True)
    _computing(draft, layer, costs)
    _kernels(draft, layer, costs)
    _fetch(draft, layer, target)
    declare_total(draft, costs)


def _loads(draft: Draft, layer: GemmLayer, costs: Costs) -> None:
    """cycles_image, cycles_weight: of one load; step_load, burst, bursts; cycles_loading."""
    load = costs.load
    image = {"inp_elements": load.inp, "inp_pieces": load.latency}
    weight = {"wgt_elements": load.wgt, "wgt_pieces": load.latency}
    storing = {"out_copies": 2}
    if costs.row:
        declare_rows(draft, layer)
        image["inp_rows"] = weight["wgt_rows"] = storing["out_rows"] = costs.row
    store = costs.store.scattered if layer.scattered else costs.store.element
    vectors = store * layer.output_vectors * layer.epilogue.out_planes
    draft.total("cycles_storing", storing, constant=vectors)
    draft.total("cycles_image", image)
    draft.total("cycles_weight", weight)
    draft.select("image_step", "data_at", ["cycles_image", "zero", "zero", "zero"])
    draft.select("weight_step", "weight_at", ["cycles_weight", "zero", "zero"])
    draft.total("step_load", {"image_step": 1, "weight_step": 1})
    draft.prod("image_all", "inp_loads", "cycles_image")
    draft.prod("weight_all", "wgt_loads", "cycles_weight")
    draft.total("cycles_loading", {"image_all": 1, "weight_all": 1, "bias_tiles_moved": load.wgt})


def _bursts(draft: Draft, layer: GemmLayer, costs: Costs) -> None:
    """burst, and later_bursts: what is loaded for several steps, how often after the first time.

    If both operands are, that is the image, and the weights are other_bursts. bias_burst: what is
    loaded for every tile; bias_first: before everything else.
    """
    for name in ("inp_tile_loads", "inp_row_loads", "wgt_tile_loads"):
        draft.total(f"later_{name}", {name: 1}, constant=-1)
    draft.select("weight_burst", "weight_at", ["zero", "cycles_weight", "zero"])
    draft.select("later_weights", "weight_at", ["zero", "later_wgt_tile_loads", "zero"])
    draft.select("burst", "data_at", ["weight_burst", *["cycles_image"] * 2, "weight_burst"])
    images = ["later_inp_tile_loads", "later_inp_row_loads"]
    draft.select("later_bursts", "data_at", ["later_weights", *images, "later_weights"])
    draft.prod("later_weight_bursts", "later_weights", "weight_burst")
    others = ["zero", "later_weight_bursts", "later_weight_bursts", "zero"]
    draft.select("other_bursts", "data_at", others)
    draft.total("plain_tiles", {"tiles": 1, "later_bursts": -1}, constant=-1)
    draft.select("step_burst", "many_reduced", ["zero", "burst"])
    if not layer.epilogue.bias_tiles:
        draft.constant("bias_burst", 0)
        draft.constant("bias_first", 0)
        return
    tiles = layer.epilogue.bias_tiles * costs.load.wgt
    draft.total("cycles_bias", {"bias_elements": tiles}, constant=2 * costs.load.latency)
    draft.select("bias_burst", "bias_at", ["cycles_bias", "zero", "zero"])
    draft.select("bias_first", "many_reduced", ["cycles_bias", "zero"])


def _steps(draft: Draft, layer: GemmLayer, costs: Costs) -> None:
    """gemm_step, of one step."""
    names = [f"tile_{axis}" for axis in REDUCED]
    draft.prod("step_uops", "tile_vectors", *names, coefficient=layer.products)
    draft.total("gemm_step", {"step_uops": 1}, constant=costs.start * layer.products)
    declare_steps(draft, {axis: layer.extents[axis] for axis in REDUCED})


def declare_steps(draft: Draft, extents: Mapping[str, int]) -> None:
    """late, by how much a step's load is longer; later_steps, all of a tile but one; and both.

    Args:
        extents: of the axes that are cut into steps.
    """
    names = [f"tile_{axis}" for axis in extents]
    draft.largest("longer_step", ["gemm_step", "step_load"])
    draft.total("late", {"longer_step": 1, "gemm_step": -1})
    tiles = list(product(*(draft.domain(name) for name in names)))
    sizes = extents.values()
    counts = [prod(size // part for size, part in zip(sizes, tile, strict=True)) for tile in tiles]
    draft.table(
        "step_counts",
        names,
        ["later_steps", "rest_steps"],
        ((*tile, n - 1, max(0, n - 2)) for tile, n in zip(tiles, counts, strict=True)),
    )
    draft.prod("later_late", "later_steps", "late")
    draft.prod("rest_late", "rest_steps", "late")
    draft.prod("later_loads", "later_steps", "step_load")


def _tile_ends(draft: Draft, layer: GemmLayer, costs: Costs) -> None:
    """cycles_end, of a tile without GEMMs and reset; cycles_last_store; end_kernels of a slot.

    cycles_parts: what the end of each tile takes because it is cut.
    """
    epilogue = layer.epilogue
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
    vector = costs.vector(epilogue.vector_cycles, epilogue.immediates)
    end = {"tile_vectors": vector - 1, "cycles_parts": 1}
    if layer.shifts_by_block:
        end["tile_co"] = costs.start
    if epilogue.plane_axes:
        rows = ((sums, 2 * (sums - 1)) for sums in draft.domain("sums"))
        draft.table("joining", ["sums"], ["vector_joining"], rows)
        end[draft.prod("tile_joining", "vector_joining", "tile_vectors")] = 1
    draft.total("cycles_end", end, constant=costs.start * _starts(layer))
    draft.total("cycles_reset", {tile_sums(layer): 1}, constant=costs.start)


def _starts(layer: GemmLayer) -> int:
    """Instructions of a tile's end, those apart that are one for each block of channels."""
    return len(layer.epilogue.stages) - layer.shifts_by_block


def _cut(layer: GemmLayer, costs: Costs, tile: list[int], slots: int) -> CutEnd:
    epilogue, elements, store = layer.epilogue, prod(tile), costs.store
    others = 2 + (epilogue.first_shift > 0) + len(epilogue.by_lane)
    others += epilogue.shift == "block" and not layer.shifts_by_block
    operations = [LastStage(1, slots, costs.immediate)] * others
    if layer.shifts_by_block:
        operations.append(LastStage(tile[0], slots * tile[0], costs.immediate))
    end = TileEnd(
        costs=costs,
        operations=tuple(operations),
        elements=elements,
        rows=result_rows(layer, *tile),
        element_cycles=(store.scattered if layer.scattered else store.element)
        * epilogue.out_planes,
        turns=max(1, layer.output_vectors // elements),
        copies=slots,
    )
    return foreseen(end, 0 if layer.scattered else store.each_row)


def declare_waits(draft: Draft, target: Target, *, bursts: bool) -> None:
    """wait_*: what a tile waits for loads, one with a burst, one without, and the first one."""
    more = target.limits.buffers - 1
    draft.total("tile_end", {"cycles_end": 1, "cycles_reset": 1})
    draft.total("tile_hides", {"tile_end": 1, "gemm_step": 1})
    draft.total("with_rest", {"tile_hides": 1, "rest_late": 1})
    ways = ["with_rest"]
    if draft.has("hold"):
        draft.total("with_held", {"cycles_end": 1, "gemm_step": 1, "later_late": 1})
        ways.append(draft.select("held", "hold", ["zero", "with_held"]))
    loads = {"step_load": 1, "bias_burst": 1} if bursts else {"step_load": 1}
    kinds: list[tuple[str, dict[str, int], dict[str, int]]] = [("plain", {}, {})]
    if bursts:
        kinds.append(("burst", {"step_burst": 1}, {"burst": 1}))
    for name, burst, alone in kinds:
        draft.total(f"{name}_loads", {**loads, **burst, "later_late": 1})
        draft.largest(f"{name}_way", [*ways, f"{name}_loads"])
        draft.total(f"{name}_overlapped", {f"{name}_way": 1, "tile_hides": -1})
        draft.total(f"{name}_alone", {**loads, **alone})
        draft.largest(f"{name}_longer", ["tile_end", f"{name}_alone"])
        serial = {f"{name}_longer": 1, "tile_end": -1, "later_loads": 1}
        draft.total(f"{name}_serial", serial)
        slots = ["zero", f"{name}_serial", *[f"{name}_overlapped"] * more]
        draft.select(f"wait_{name}", "slots", slots)
    others = {"other_bursts": 1} if bursts else {}
    draft.total("first_serial", {"later_loads": 1, **others})
    draft.select("wait_first", "slots", ["zero", "first_serial", *["later_late"] * more])


def _computing(draft: Draft, layer: GemmLayer, costs: Costs) -> None:
    """cycles_computing, from the first load on; cycles_loading_first, before the last tile's end.

    The first tile is reset while the first load is under way.
    """
    epilogue, vectors = layer.epilogue, layer.output_vectors
    draft.total("first_load", {"cycles_image": 1, "cycles_weight": 1, "bias_first": 1})
    draft.largest("cycles_begun", ["first_load", "cycles_reset"])
    draft.total("first_beyond", {"cycles_begun": 1, "cycles_reset": -1})
    draft.prod("all_parts", "tiles", "cycles_parts")
    draft.prod("waits_plain", "plain_tiles", "wait_plain")
    draft.prod("waits_bursts", "later_bursts", "wait_burst")
    sums = ("first_beyond", "all_parts", "waits_plain", "waits_bursts", "wait_first")
    busy = dict.fromkeys(sums, 1)
    busy |= {"steps": costs.start * layer.products, "tiles": costs.start * (1 + _starts(layer))}
    if layer.shifts_by_block:
        draft.prod("shifts", "tiles", "tile_co", coefficient=costs.start)
        busy["shifts"] = 1
    vector = costs.vector(epilogue.vector_cycles, epilogue.immediates)
    if epilogue.plane_axes:
        draft.prod("all_joining", "tiles", "tile_joining")
        draft.prod("all_resets", "tiles", "tile_sums")
        busy |= {"all_joining": 1, "all_resets": 1}
        vector -= 1
    if epilogue.by_lane:
        loads = {"bias_loads": costs.load.latency * len(epilogue.by_lane)}
        busy |= {**loads, "lanes_moved": costs.load.acc}
    draft.total("cycles_computing", busy, constant=layer.gemm_cycles + vector * vectors)
    last = {"cycles_loading": 1, "cycles_end": 1, "gemm_step": 1}
    draft.total("cycles_loading_first", last)


def _kernels(draft: Draft, layer: GemmLayer, costs: Costs) -> None:
    """uop_kernels, and what loading them takes."""
    epilogue = layer.epilogue
    draft.prod("end_keys", "end_kernels", "acc_slots")
    kernels = {"gemm_keys": layer.products, "end_keys": 1 + costs.loads_again}
    if epilogue.bias_tiles:
        kernels["bias_tile_keys"] = 1
    if epilogue.by_lane:
        kernels["lane_keys"] = len(epilogue.by_lane)
    if costs.loads_again and epilogue.shift == "block":
        kernels["shift_keys"] = 1
    if epilogue.out_planes > 1:
        kernels["acc_slots"] = len(PLANES_OF_RESULTS)
    draft.total("uop_kernels", kernels, constant=-1)
    draft.prod("cycles_uop_loads", "uop_kernels", coefficient=costs.uop_load)


def _fetch(draft: Draft, layer: GemmLayer, target: Target) -> None:
    counts = {"steps": layer.products, "tiles": 2 + len(layer.epilogue.stages), "uop_kernels": 1}
    copies = dict.fromkeys(("inp_copies", "wgt_copies", "out_copies"), 1)
    draft.total("fetched", {**counts, **copies}, constant=8)
    declare_fetch(draft, target)


def declare_total(draft: Draft, costs: Costs) -> None:
    """The estimate itself: whatever is busiest, and what overlaps with nothing."""
    busy = ["cycles_computing", "cycles_loading_first"]
    if costs.row:
        busy.append("cycles_storing")
    draft.largest("cycles_overlapped", busy)
    each = ("cycles_fetch", "cycles_overlapped", "cycles_last_store", "cycles_uop_loads")
    draft.total(ESTIMATE, {**dict.fromkeys(each, 4), "uops": costs.uop_quarters})


def declare_fetch(draft: Draft, target: Target) -> None:
    """cycles_fetch: until the first batch of the instructions, `fetched`, has been read."""
    draft.constant("batch", 1 << (target.timing.log_burst_beats - 1))
    draft.largest("fetched_or_batch", ["fetched", "batch"])
    terms = {"fetched": 2, "batch": 2, "fetched_or_batch": -2}
    draft.total("cycles_fetch", terms, constant=FETCH)
