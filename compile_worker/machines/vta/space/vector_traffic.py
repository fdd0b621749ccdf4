"""What a schedule of an addition or of pooling moves and takes, in closed form."""

from __future__ import annotations

from itertools import product

from tilefarm.space import ESTIMATE
from tilefarm.target import Target

from compile_worker.draft import Draft
from compile_worker.machines.vta import limits
from compile_worker.machines.vta.costs import costs_of
from compile_worker.machines.vta.space.vector_layer import VectorLayer, VectorStage


def vectors_of(stage: VectorStage) -> str:
    """The variable that holds how many vectors a tile of a stage has."""
    return f"vectors_{stage.more[0]}_{stage.more[1]}"


def declare_vector_traffic(draft: Draft, layer: VectorLayer, target: Target) -> None:
    """Copies, instructions, bytes, and cycles of each module; the estimate."""
    vta = target.geometry
    _copies(draft, layer)
    draft.prod("inp_moved", "inp_elements", "steps")
    draft.prod("inp_nbytes", "inp_moved", coefficient=vta.inp_nbytes)
    starts = _starts(layer)
    sums = {"sums": 1} if layer.summing else {}
    if layer.summing:
        draft.prod("sums", "steps", "sum_parts")
    counts = {"inp_copies": 1, "out_copies": 1, "tiles": starts + 2, "steps": 2, "uops": 1, **sums}
    draft.total("instructions", counts, constant=8 + len(layer.tiles))
    most = limits.instruction_capacity()
    draft.at_most("insn_queue", "instructions", most, why=f"the queue holds {most} instructions")
    _cycles(draft, layer, target)
    _prediction(draft, layer, target)


def _starts(layer: VectorLayer) -> int:
    """Instructions of the compute module for every tile, those of a sum's steps apart."""
    resets = sum(stage.resets and stage.engine != "reset" for stage in layer.stages)
    return len(layer.stages) + resets - (layer.summing is not None) - layer.starts_rounded


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


def _cycles(draft: Draft, layer: VectorLayer, target: Target) -> None:
    """How long each module is busy, and what cannot overlap: the first load, the last store."""
    costs = costs_of(target)
    inp, wgt = costs.load.inp, costs.load.wgt
    each: dict[str, int] = {}
    for stage in layer.stages:
        own = 0 if stage.summed else stage.cycles
        own = costs.alu(own) if stage.engine == "alu" else own
        each[vectors_of(stage)] = each.get(vectors_of(stage), 0) + own + stage.resets
    if layer.starts_rounded:
        each[vectors_of(layer.out)] -= 1
    draft.total("tile_cycles", each, constant=costs.start * _starts(layer))
    draft.prod("all_tile_cycles", "tiles", "tile_cycles")
    busy = {"all_tile_cycles": 1, **({"sums": costs.start} if layer.summing else {})}
    taps = layer.extents["kh"] * layer.extents["kw"] if layer.summing else 0
    draft.total("cycles_computing", busy, constant=taps * layer.output_vectors)
    loading, storing = {"inp_moved": inp, "inp_copies": costs.load.latency}, {"out_copies": 2}
    if costs.row:
        _rows(draft, layer)
        loading |= {"inp_rows": costs.row}
        storing |= {"out_rows": costs.row}
    draft.total("cycles_loading", loading)
    store, latency = costs.store.element, costs.load.latency
    draft.total("cycles_storing", storing, constant=store * layer.output_vectors)
    factors = len(layer.tiles) * (wgt + latency)
    draft.total("cycles_first_load", {"inp_elements": inp}, constant=factors + latency)
    draft.total("cycles_last_store", {"tile_vectors": store}, constant=latency)


def _rows(draft: Draft, layer: VectorLayer) -> None:
    """inp_rows, out_rows: rows of all copies; those of copies that join channels are channels."""
    windows = layer.windows
    keys = [f"tile_{axis}" for axis in ("oh", "kh")]
    draft.table(
        "rows_loaded",
        keys,
        ["inp_window_rows"],
        (
            (oh, kh, windows[0].loaded(oh, kh))
            for oh, kh in product(*(draft.domain(key) for key in keys))
        ),
    )
    draft.select("inp_copy_rows", "inp_joined", ["inp_window_rows", "tile_co"])
    draft.prod("inp_rows", "inp_copies", "inp_copy_rows")
    draft.select("out_copy_rows", "out_joined", ["tile_oh", "tile_co"])
    draft.prod("out_rows", "out_copies", "out_copy_rows")


def _prediction(draft: Draft, layer: VectorLayer, target: Target) -> None:
    """One estimate of a kernel's time, in quarters of a cycle.

    Computing always counts whole. With one slot loads overlap with what the ALU does and with
    nothing of a sum; with more they overlap, unless loading takes longer than computing. Stores
    that share their slot with the next tile are cut and overlap for the most part.
    """
    exposed = {"cycles_computing": 4, "cycles_first_load": 4, "cycles_last_store": 4}
    draft.total("quarters_serial", {**exposed, "cycles_loading": 4 if layer.summing else 2})
    waits = layer.loading_cycles(target) > layer.gemm_cycles + layer.other_cycles
    draft.total("quarters_overlapped", {**exposed, "cycles_loading": 3 if waits else 1})
    more = target.limits.buffers - 1
    operands = ["zero", "quarters_serial", *["quarters_overlapped"] * more]
    draft.select("quarters_operands", "slots", operands)
    stores = ["zero", "cycles_storing", *["zero"] * more]
    draft.select("cycles_store_exposed", "acc_slots", stores)
    both = {"quarters_operands": 1, "cycles_store_exposed": 1}
    draft.total(ESTIMATE, both)
