"""User-defined, for requantizing layers: accumulator slots, and how often biases are loaded.

Fires on a multiplication that bias, factor, shift and clip follow; these run on the accumulators
in place. A bias is one more GEMM, of tiles of weights and a constant vector; factors and shifts by
lane lie in the accumulator memory; a shift of a whole block is part of the instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step

from compile_worker.draft import Draft, Emptied
from compile_worker.ir.annotations import ALU, DMA, HOLD, HOST
from compile_worker.machines.vta import limits
from compile_worker.machines.vta.space.layer import PLANES_OF_RESULTS, SPATIAL, Epilogue, GemmLayer
from compile_worker.machines.vta.space.loop_orders import TILE_ORDERS
from compile_worker.machines.vta.space.slot_keys import declare_slot_keys
from compile_worker.machines.vta.space.tiling import tile_loop, tile_sums
from compile_worker.schedule.marks import annotate_step

BIAS_AT: Final = ("tile", "co", "once")
TILE, CO, ONCE = range(len(BIAS_AT))

BIAS_SLOTS: Final = 2
"""Copies of bias tiles that are loaded again and again: they are used behind a step's end."""


def declare_epilogue(draft: Draft, layer: GemmLayer, target: Target) -> None:
    """acc_slots, hold, bias_at; what is kept in each memory; micro-ops of the whole kernel."""
    if layer.epilogue.factor and (lacking := limits.operation_exists(target, "mul")) is not None:
        raise Emptied(lacking.name, lacking.why)
    lacking = limits.shift_fits(target, layer.epilogue.first_shift)
    if lacking is not None:
        raise Emptied(lacking.name, lacking.why)
    draft.tunable("acc_slots", range(1, target.limits.buffers + 1))
    draft.at_most("canonical_acc_slots", "acc_slots", "tiles", why="one tile needs one slot")
    if target.limits.buffers > 1:
        draft.tunable("hold", (0, 1), ("never", "tile"))
        draft.total("held_slots", {"hold": 1}, constant=1)
        draft.at_most("canonical_hold", "held_slots", "slots", why="one slot is never ahead")
    _places(draft, layer, target)
    _memories(draft, layer, target)
    _uops(draft, layer, target)


def bias_scope_steps(layer: GemmLayer, point: Point) -> Iterator[Step]:
    """Bring biases, factors and shifts into the memories that they are used from."""
    del point
    for name, scope in _loaded(layer):
        yield Step("cache_read", (name, scope))


def bias_steps(layer: GemmLayer, point: Point) -> Iterator[Step]:
    """Load biases where the point says; before the multiplication moves, so in front of it."""
    at = point.get("bias_at", ONCE)
    loop = (tile_loop(layer, point), tile_loop(layer, point, "co"), None)[at]
    for name, scope in _loaded(layer):
        stage = f"{name}_{scope}"
        if loop is not None and name != "unit":
            yield Step("compute_at", (stage, loop))
            if scope == "wgt":
                yield Step("double_buffer", (stage, BIAS_SLOTS))
        yield annotate_step(DMA, stage, "load")


def epilogue_steps(layer: GemmLayer, point: Point) -> Iterator[Step]:
    """Hand what follows the multiplication to GEMM, ALU and STORE."""
    yield Step("double_buffer", (layer.stage, point["acc_slots"]))
    if point.get("hold"):
        yield annotate_step(HOLD, layer.stage, 1)
    epilogue = layer.epilogue
    if epilogue.bias_tiles:
        planes = epilogue.plane_axes[-1:]
        axes = ("t", *planes, *layer.output_loops, "b", "o", "i")
        yield Step("reorder", tuple(f"biased_{axis}" for axis in axes))
        for axis in planes:
            yield annotate_step(HOST, f"biased_{axis}", 1)
        yield Step("tensorize", ("biased", "gemm"))
    if epilogue.out_planes > 1:
        yield Step("double_buffer", ("zero", point["acc_slots"]))
        yield Step("tensorize", ("zero", "reset"))
    for stage in epilogue.elementwise:
        yield annotate_step(ALU, stage, 1)
    yield annotate_step(DMA, "out", "store")


def _loaded(layer: GemmLayer) -> Iterator[tuple[str, str]]:
    """Operands of the epilogue that are loaded, and the memory of each."""
    epilogue = layer.epilogue
    if epilogue.bias_tiles:
        yield from (("bias", "wgt"), ("unit", "inp"))
    for name in epilogue.by_lane:
        yield name, "acc"


def _places(draft: Draft, layer: GemmLayer, target: Target) -> None:
    """bias_at, and how many blocks of channels are loaded how often."""
    if not layer.epilogue.loads:
        draft.constant("bias_moved", 0)
        draft.constant("bias_loads", 0)
        draft.constant("bias_elements", 0)
        draft.constant("bias_slots", 1)
        return
    twice = target.limits.buffers >= BIAS_SLOTS and not layer.epilogue.one_bias
    again = range(len(BIAS_AT)) if twice else (ONCE,)
    if twice:
        draft.tunable("bias_at", again, BIAS_AT)
    else:
        draft.constant("bias_at", ONCE)
    draft.require_rows(
        "canonical_bias_at",
        ["bias_at", "tile_order", *(f"many_{axis}" for axis in SPATIAL)],
        _bias_rows(layer),
        why="loading inside a loop that runs once is loading outside of it",
    )
    draft.constant("bias_once", layer.bias_blocks)
    draft.constant("two", BIAS_SLOTS)
    draft.table(
        "bias_parts",
        ["tile_co"],
        ["bias_trips"],
        ((tile, max(1, layer.bias_blocks // tile)) for tile in draft.domain("tile_co")),
    )
    draft.select("bias_elements", "bias_at", ["tile_co", "tile_co", "bias_once"])
    draft.select("bias_loads", "bias_at", ["tiles", "wgt_tile_loads", "one"])
    draft.select("bias_slots", "bias_at", ["two", "two", "one"])
    draft.prod("bias_moved", "bias_loads", "bias_elements")


def _bias_rows(layer: GemmLayer) -> Iterator[tuple[int, ...]]:
    for order, axes in enumerate(TILE_ORDERS):
        for code in range(1 << len(SPATIAL)):
            many = dict(zip(SPATIAL, ((code >> 2) & 1, (code >> 1) & 1, code & 1), strict=True))
            inside = any(many[axis] for axis in axes[axes.index("co") + 1 :])
            for at in range(len(BIAS_AT)):
                if (at != TILE or inside) and (at != CO or many["co"] or layer.weight_sets > 1):
                    yield (at, order, *(many[axis] for axis in SPATIAL))


def _memories(draft: Draft, layer: GemmLayer, target: Target) -> None:
    """What lives in each memory at once."""
    epilogue = layer.epilogue
    draft.prod("acc_tiles", tile_sums(layer), "acc_slots")
    draft.prod("bias_tiles", "bias_elements", "bias_slots", coefficient=epilogue.bias_tiles)
    lanes = {"bias_elements": len(epilogue.by_lane)} if epilogue.by_lane else {}
    copies = {}
    if epilogue.out_planes > 1:
        copies[draft.prod("acc_copies", "tile_vectors", "acc_slots")] = 1
    terms: dict[str, dict[str, int]] = {
        "inp": {"inp_operand": 1},
        "wgt": {"wgt_operand": 1, "bias_tiles": 1},
        "acc": {"acc_tiles": 1, **lanes, **copies},
    }
    units = int(epilogue.bias_tiles > 0)
    named = {"inp": "vectors", "wgt": "tiles", "acc": "vectors"}
    for scope, parts in terms.items():
        constant = units if scope == "inp" else 0
        draft.total(f"{scope}_resident", parts, constant=constant)
        depth = target.model.memory(scope).depth
        why = f"{scope.upper()} holds {depth} {named[scope]}"
        draft.at_most(f"{scope}_sram", f"{scope}_resident", depth, why=why)


def _uops(draft: Draft, layer: GemmLayer, target: Target) -> None:
    """GEMM micro-ops for every key; on whole tiles, resets and ALU operations need one a key."""
    epilogue, tiles = layer.epilogue, layer.epilogue.bias_tiles
    declare_slot_keys(draft, layer, target)
    draft.prod("all_gemm_uops", "gemm_uops", "gemm_keys", coefficient=layer.products)
    whole = 1 + len(CLIPS) + (epilogue.first_shift > 0)
    if epilogue.out_planes > 1:
        whole += len(PLANES_OF_RESULTS)
    terms = {"all_gemm_uops": 1, "acc_slots": whole}
    if epilogue.plane_axes:
        terms["raising_uops"] = 1
        draft.table(
            "joins",
            ["sums"],
            ["joining_kernels"],
            ((sums, _joins(sums, epilogue)) for sums in draft.domain("sums")),
        )
        draft.prod("raising_uops", "acc_slots", "joining_kernels")
    if epilogue.by_lane:
        draft.select("lane_cases", "bias_at", ["one", "one", "bias_trips"])
        draft.prod("lane_keys", "lane_cases", "acc_slots")
        terms["lane_keys"] = len(epilogue.by_lane)
    if epilogue.bias_tiles:
        cases = ["bias_slots", "bias_slots", "bias_trips"]
        draft.select("bias_tile_cases", "bias_at", cases)
        draft.prod("bias_tile_keys", "bias_tile_cases", "acc_slots", coefficient=tiles)
        terms["bias_tile_keys"] = 1
    if epilogue.shift == "block":
        draft.constant("all_co", 1 if layer.flat and layer.own_weights else layer.channel_blocks)
        draft.prod("shift_keys", "all_co", "acc_slots")
        terms["shift_keys"] = 1
    draft.total("uops", terms)
    capacity = limits.uop_capacity(target)
    draft.at_most("uop_sram", "uops", capacity, why=f"UOP keeps {capacity} micro-ops")


def _joins(sums: int, epilogue: Epilogue) -> int:
    """Operations that make one of so many sums side by side: shifts, and additions but one."""
    return len(epilogue.plane_axes) + sums.bit_length() - 1


CLIPS: Final = ("lower", "upper")
