"""What a schedule moves and does, in closed form: the cost model's features, and one last limit.

What the modules take is in `compile_worker.machines.vta.costs`, by the design of the
target's board. Fires on every layer.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Final

from tilefarm.space import ESTIMATE
from tilefarm.target import Target

from compile_worker.draft import Draft
from compile_worker.machines.vta import limits
from compile_worker.machines.vta.costs import Costs, costs_of
from compile_worker.machines.vta.space.layer import PLANES_OF_RESULTS, SPATIAL, GemmLayer
from compile_worker.machines.vta.space.rows import declare_rows
from compile_worker.machines.vta.space.tiling import tile_sums

LAST_STORE: Final = 600
"""About what is left of a large tile's store when its last part has been computed."""

UOP_WAIT: Final = 80
"""Cycles that the load of a kernel's micro-ops waits for operands that are loaded meanwhile."""

FETCH: Final = 280
"""Cycles before the first instruction has been fetched."""


def declare_traffic(draft: Draft, layer: GemmLayer, target: Target) -> None:
    """Loads, copies, bytes, instructions and cycles of each module."""
    vta = target.geometry
    _copies(draft, layer)
    draft.prod("inp_nbytes", "inp_moved", coefficient=vta.inp_nbytes)
    epilogue = layer.epilogue
    draft.prod("bias_tiles_moved", "bias_moved", coefficient=epilogue.bias_tiles)
    draft.prod("lanes_moved", "bias_moved", coefficient=len(epilogue.by_lane))
    weights = {"wgt_moved": vta.wgt_nbytes, "bias_tiles_moved": vta.wgt_nbytes}
    draft.total("wgt_nbytes", weights)
    draft.prod("acc_nbytes", "lanes_moved", coefficient=vta.acc_nbytes)
    draft.total("dram_read_nbytes", {"inp_nbytes": 1, "wgt_nbytes": 1, "acc_nbytes": 1})
    draft.total(
        "instructions",
        {
            "steps": 3 + layer.products,
            "inp_copies": 1,
            "wgt_copies": 1,
            "bias_loads": 1,
            "out_copies": 1,
            "tiles": 3 + len(epilogue.stages),
        },
        constant=8,
    )
    most = limits.instruction_capacity()
    draft.at_most("insn_queue", "instructions", most, why=f"the queue holds {most} instructions")
    _cycles(draft, layer, target)
    _prediction(draft, target, layer)


def _cycles(draft: Draft, layer: GemmLayer, target: Target) -> None:
    """How long each module is busy, and what cannot overlap: the first load, the last store.

    The first tile is reset while the first load is under way.
    """
    costs = costs_of(target)
    vectors, latency = layer.output_vectors, costs.load.latency
    inp, wgt, acc = costs.load.inp, costs.load.wgt, costs.load.acc
    epilogue = layer.epilogue
    start = costs.start
    busy = {
        "steps": start * layer.products,
        "tiles": start * (1 + len(epilogue.stages)),
        "lanes_moved": acc,
    }
    if epilogue.by_lane:
        busy["bias_loads"] = latency * len(epilogue.by_lane)
    if epilogue.shift == "block":
        draft.prod("shifts", "tiles", "tile_co", coefficient=start)
        busy["shifts"] = 1
    _ends(draft, layer, costs)
    draft.total(
        "cycles_first_load", {"inp_elements": inp, "wgt_elements": wgt}, constant=2 * latency
    )
    draft.largest("cycles_begun", ["cycles_first_load", tile_sums(layer)])
    vector = costs.vector(epilogue.vector_cycles, epilogue.immediates)
    if epilogue.plane_axes:
        rows = ((sums, 2 * (sums - 1) * vectors) for sums in draft.domain("sums"))
        draft.table("joining", ["sums"], ["cycles_joining"], rows)
        draft.prod("later_sums", "later_resets", "sums")
    sums = {"later_sums": 1, "cycles_joining": 1} if epilogue.plane_axes else {"later_resets": 1}
    draft.total(
        "cycles_computing",
        {**busy, "cycles_begun": 1, **sums},
        constant=layer.gemm_cycles + (vector - 1) * vectors,
    )
    loading = {"inp_moved": inp, "wgt_moved": wgt, "inp_copies": latency, "wgt_copies": latency}
    storing = {"out_copies": 2}
    if costs.row:
        declare_rows(draft, layer)
        loading |= {"inp_rows": costs.row, "wgt_rows": costs.row}
        storing |= {"out_rows": costs.row}
    draft.total("cycles_loading", {**loading, "bias_tiles_moved": wgt})
    store = costs.store.scattered if layer.scattered else costs.store.element
    draft.total("cycles_storing", storing, constant=store * vectors * epilogue.out_planes)


def _ends(draft: Draft, layer: GemmLayer, costs: Costs) -> None:
    """later_resets: vectors of all tiles but one; cycles_last_store: of a tile cut into parts."""
    store = costs.store.scattered if layer.scattered else costs.store.element
    names = [f"tile_{axis}" for axis in SPATIAL]
    draft.table(
        "tile_ends",
        names,
        ["later_resets", "cycles_last_store"],
        (
            (*tile, layer.output_vectors - prod(tile), min(store * prod(tile), LAST_STORE))
            for tile in product(*(draft.domain(name) for name in names))
        ),
    )


def _prediction(draft: Draft, target: Target, layer: GemmLayer) -> None:
    """One estimate of a kernel's time, in quarters of a cycle.

    With one slot, computing waits for loading; with two they overlap. Micro-ops are loaded once for
    every slot key, and wait for operands that are loaded meanwhile unless these are held.
    """
    draft.constant("zero", 0)
    costs = costs_of(target)
    shifts = {"shift_keys": 1} if draft.has("shift_keys") else {}
    copied = len(PLANES_OF_RESULTS) if layer.epilogue.out_planes > 1 else 0
    slots = costs.slot_kernels + copied
    draft.total("uop_kernels", {"gemm_keys": layer.products, "acc_slots": slots, **shifts})
    computing = {"cycles_computing": 4, "uops": costs.uop_quarters}
    computing["uop_kernels"] = 4 * costs.uop_load
    if draft.has("hold"):
        draft.select("waiting_kernels", "hold", ["uop_kernels", "zero"])
        computing["waiting_kernels"] = 4 * UOP_WAIT
    draft.total("quarters_computing", computing)
    draft.prod("quarters_loading", "cycles_loading", coefficient=4)
    draft.total("quarters_serial", {"quarters_computing": 1, "quarters_loading": 1})
    together = ["quarters_computing", "quarters_loading"]
    if costs.row:
        together.append(draft.prod("quarters_storing", "cycles_storing", coefficient=4))
    draft.largest("quarters_overlapped", together)
    more = target.limits.buffers - 1
    operands = ["zero", "quarters_serial", *["quarters_overlapped"] * more]
    draft.select("quarters_operands", "slots", operands)
    draft.prod("cycles_every_store", "tiles", "cycles_last_store")
    stores = ["zero", "cycles_every_store", *["cycles_last_store"] * more]
    draft.select("cycles_store_exposed", "acc_slots", stores)
    both = {"quarters_operands": 1, "cycles_store_exposed": 4}
    draft.total(ESTIMATE, both, constant=4 * FETCH)


def _copies(draft: Draft, layer: GemmLayer) -> None:
    """DMA instructions: a copy has two dimensions, what has more is several copies."""
    draft.prod("tile_co_ci", "tile_co", "tile_ci")
    split = [(at, kh, kw) for at in range(3) for kh in (0, 1) for kw in (0, 1)]
    draft.table(
        "weight_copies",
        ["weight_at", "many_kh", "many_kw"],
        ["weight_pieces"],
        ((at, kh, kw, 0 if at else 2 * kw or kh) for at, kh, kw in split),
        why="a part of the kernel window is not contiguous in memory",
    )
    rows = ["tile_co", "tile_co_ci"]
    if layer.planes > 1:
        rows = [draft.prod(f"{each}_planes", each, coefficient=layer.planes) for each in rows]
    draft.select("wgt_pieces", "weight_pieces", ["one", *rows])
    draft.prod("wgt_copies", "wgt_loads", "wgt_pieces")
    draft.constant("all_ci_images", layer.image_blocks * layer.batches)
    pieces = ["inp_step_blocks", "inp_tile_blocks", "inp_row_blocks", "all_ci_images"]
    draft.select("inp_pieces", "data_at", ["one"] * len(pieces) if layer.flat else pieces)
    draft.prod("inp_copies", "inp_loads", "inp_pieces")
    rows = ["tile_oh"] if layer.scattered else []
    pieces = [] if layer.flat else ["tile_co", *rows]
    draft.prod("out_copies", "tiles", *pieces, coefficient=layer.epilogue.out_planes)
