"""The space of additions and pooling: tiles, order, slots, and what they hold, move and take.

There is one multi-level tiling, and little reuse to place: images are loaded for every tile, or for
every step of a sum, factors once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from tilefarm.target import Target

from compile_worker.draft import Draft
from compile_worker.machines.vta import limits
from compile_worker.machines.vta.space.gemm import FOLDED, keep_writes_apart
from compile_worker.machines.vta.space.layer import SPATIAL
from compile_worker.machines.vta.space.loop_orders import long_loops
from compile_worker.machines.vta.space.tiling import cut_axis, divisors, order_tiles
from compile_worker.machines.vta.space.vector_estimate import vectors_of
from compile_worker.machines.vta.space.vector_layer import VectorLayer, VectorStage
from compile_worker.machines.vta.space.vector_trace import APART, SUM_ORDERS
from compile_worker.machines.vta.space.vector_traffic import declare_vector_traffic

SUMMED: Final = ("kh", "kw")
_LOOPS: Final = {"kh": "kh", "kw": "kw", "co": "co", "h": "oh", "w": "ow"}


def declare_vector_space(draft: Draft, layer: VectorLayer, target: Target) -> None:
    """Every variable and constraint of a layer."""
    draft.constant("one", 1)
    draft.constant("zero", 0)
    _tiling(draft, layer)
    _slots(draft, target)
    _images(draft, layer, target)
    _accumulators(draft, layer, target)
    _sum(draft, layer, target)
    _uops(draft, layer, target)
    declare_vector_traffic(draft, layer, target)


def _tiling(draft: Draft, layer: VectorLayer) -> None:
    """tile_*, tile_order; trips_*, long_* (tile > 1), many_* (trips > 1); tiles, steps."""
    for axis in (*SPATIAL, *SUMMED):
        extent = layer.extents[axis]
        cut = axis in SPATIAL or layer.summing
        cut_axis(draft, axis, extent, divisors(extent) if cut else (extent,))
    order_tiles(draft)
    draft.prod("tiles", *(f"trips_{axis}" for axis in SPATIAL), coefficient=layer.batches)
    draft.prod("trips_summed", *(f"trips_{axis}" for axis in SUMMED))
    draft.prod("steps", "tiles", "trips_summed")
    draft.prod("tile_vectors", *(f"tile_{axis}" for axis in SPATIAL))
    flags = list(product((0, 1), repeat=len(SUMMED)))
    many = [f"many_{axis}" for axis in SUMMED]
    draft.table("steps_many", many, ["many_steps"], ((*each, int(any(each))) for each in flags))


def _slots(draft: Draft, target: Target) -> None:
    for name, turns in (("slots", "steps"), ("acc_slots", "tiles")):
        draft.tunable(name, range(1, target.limits.buffers + 1))
        draft.at_most(f"canonical_{name}", name, turns, why="slots that nothing alternates between")


def _images(draft: Draft, layer: VectorLayer, target: Target) -> None:
    """ih, iw: positions that a step loads; inp_resident; wgt_resident."""
    for axis, (out, kernel, name) in enumerate((("oh", "kh", "ih"), ("ow", "kw", "iw"))):
        window = layer.windows[axis]
        pairs = list(product(draft.domain(f"tile_{out}"), draft.domain(f"tile_{kernel}")))
        keys = [f"tile_{out}", f"tile_{kernel}"]
        rows = [(tile, part, window.loaded(tile, part)) for tile, part in pairs]
        draft.table(f"window_{name}", keys, [name], rows)
        draft.require_rows(
            "dma_fields",
            keys,
            ((tile, part) for tile, part in pairs if window.fits(tile, part)),
            why="a copy has at least one row and column that is not padding, and pads of 0 to 15",
        )
    draft.prod("inp_elements", "tile_co", "ih", "iw", coefficient=len(layer.images))
    draft.prod("inp_resident", "inp_elements", "slots")
    draft.constant("wgt_resident", len(layer.tiles))
    for scope, unit in (("inp", "vectors"), ("wgt", "tiles")):
        depth = target.model.memory(scope).depth
        why = f"{scope.upper()} holds {depth} {unit}"
        draft.at_most(f"{scope}_sram", f"{scope}_resident", depth, why=why)


def _accumulators(draft: Draft, layer: VectorLayer, target: Target) -> None:
    """vectors_*: of a tile of every shape of stages; acc_resident."""
    for more in sorted({stage.more for stage in layer.stages}):
        rows = draft.total(f"rows_{more[0]}_{more[1]}", {"tile_oh": 1}, constant=more[0])
        columns = draft.total(f"columns_{more[0]}_{more[1]}", {"tile_ow": 1}, constant=more[1])
        draft.prod(f"vectors_{more[0]}_{more[1]}", "tile_co", rows, columns)
    draft.prod("acc_tiles", "tile_vectors", "acc_slots")
    counts: dict[str, int] = {"acc_tiles": 1}
    for stage in layer.roots:
        if stage.name != layer.out.root:
            name = vectors_of(stage)
            counts[name] = counts.get(name, 0) + 1
    draft.total("acc_resident", counts)
    depth = target.geometry.acc_depth
    draft.at_most("acc_sram", "acc_resident", depth, why=f"ACC holds {depth} vectors")


def _sum(draft: Draft, layer: VectorLayer, target: Target) -> None:
    """sum_order; sum_parts, the instructions of a step; sum_uops of each; distance of writes."""
    if layer.summing is None:
        return
    draft.tunable("sum_order", range(len(SUM_ORDERS)), _order_names())
    draft.constant("never", limits.NEVER)
    draft.constant("least_distance", target.limits.acc_distance)
    unfolded = ["sum_third", "sum_fourth", "sum_fifth"]
    axes = (*SUMMED, *SPATIAL)
    draft.table(
        "canonical_sum_order",
        ["sum_order", *(f"long_{axis}" for axis in axes)],
        [*unfolded, "inside_sum", "is_apart"],
        _sum_rows(axes),
        why="two orders that differ in loops of one only are the same",
    )
    lengths = [*(f"tile_{axis}" for axis in axes), "one"]
    written = [draft.select(f"{name}_uops", name, lengths) for name in unfolded]
    draft.prod("sum_uops", *written, why="the two outermost loops fold into the instruction")
    draft.prod("tile_taps", "tile_kh", "tile_kw")
    draft.select("sum_parts", "is_apart", ["one", "tile_taps"])
    keep_writes_apart(draft, "inside_sum")


def _order_names() -> list[str]:
    apart = ["" if order != APART else ", a tap at a time" for order in range(len(SUM_ORDERS))]
    return [" ".join(order) + more for order, more in zip(SUM_ORDERS, apart, strict=True)]


def _sum_rows(axes: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    """(order, long flags, loops three to five as positions in `axes`, what sums enclose, apart)."""
    for flags in product((0, 1), repeat=len(axes)):
        seen: set[tuple[str, ...]] = set()
        for number, order in enumerate(SUM_ORDERS):
            named = tuple(_LOOPS[loop] for loop in order)
            loops = long_loops(named, dict(zip(axes, flags, strict=True)))
            apart = number == APART and any(axis in SUMMED for axis in loops)
            if apart or loops not in seen:
                seen.add(loops)
                inside = tuple(axis for axis in loops if not apart or axis in SPATIAL)
                written = [axes.index(axis) for axis in inside[FOLDED:]]
                rest = [len(axes)] * (3 - len(written))
                enclosed = _enclosed(named, inside)
                yield (number, *flags, *written, *rest, enclosed, int(apart))


def _enclosed(order: tuple[str, ...], loops: tuple[str, ...]) -> int:
    """Position among (all, ow, co, oh x ow, never) of what runs inside the last summing loop."""
    if not any(axis in SUMMED for axis in loops):
        return 4
    last = max(order.index(axis) for axis in SUMMED)
    return [SPATIAL, ("ow",), ("co",), ("oh", "ow")].index(order[last + 1 :])


def _uops(draft: Draft, layer: VectorLayer, target: Target) -> None:
    """Micro-ops of every instruction, once for each combination of slots that it works in."""
    most = range(1, target.limits.buffers + 1)
    draft.table(
        "slot_pairs",
        ["slots", "acc_slots", "many_steps"],
        ["both_slots"],
        (
            (slots, acc, cut, slots if slots == acc and not cut else slots * acc)
            for slots, acc, cut in product(most, most, (0, 1))
        ),
        why="slots that take the same turns are one case",
    )
    terms: dict[str, int] = {}

    def add(name: str, count: int = 1) -> None:
        terms[name] = terms.get(name, 0) + count

    for stage in layer.stages:
        is_out = stage.root == layer.out.root
        if stage.resets or stage.engine == "alu":
            add("acc_slots" if is_out else "one")
        if stage.engine == "gemm":
            add(_gemm_uops(draft, stage, "both_slots" if is_out else "slots"))
    draft.total("uops", terms)
    capacity = limits.uop_capacity(target)
    draft.at_most("uop_sram", "uops", capacity, why=f"UOP keeps {capacity} micro-ops")


def _gemm_uops(draft: Draft, stage: VectorStage, keys: str) -> str:
    """The variable that counts a multiplication's micro-ops for all of its keys."""
    if stage.summed:
        return draft.prod("all_sum_uops", "sum_uops", "sum_parts", keys)
    count = f"written_{stage.more[0]}_{stage.more[1]}"
    name = f"uops_{stage.more[0]}_{stage.more[1]}_{keys}"
    if not draft.has(count):
        _written_blocks(draft, stage, count)
    if not draft.has(name):
        draft.prod(name, count, keys)
    return name


def _written_blocks(draft: Draft, stage: VectorStage, name: str) -> None:
    """Blocks of channels are micro-ops if rows and columns are the instruction's two loops."""
    domains = (draft.domain(f"tile_{axis}") for axis in SPATIAL)
    rows, columns = stage.more
    draft.table(
        f"loops_of_{name}",
        [f"tile_{axis}" for axis in SPATIAL],
        [name],
        (
            (co, oh, ow, co if oh + rows > 1 and ow + columns > 1 else 1)
            for co, oh, ow in product(*domains)
        ),
    )
