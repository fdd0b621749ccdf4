"""User-defined, for requantizing layers: accumulator slots, and how often biases are loaded.

Fires on a multiplication that bias, shift and clip follow; these run on the accumulators in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step

from compile_worker import limits
from compile_worker.space.constraints import Draft
from compile_worker.space.layer import SPATIAL, Layer
from compile_worker.space.loop_orders import TILE_ORDERS
from compile_worker.space.tiling import ELEMENTWISE, tile_loop

BIAS_AT: Final = ("tile", "co", "once")
BIASES: Final = ("bias", "shift")
TILE, CO = 0, 1


def declare_epilogue(draft: Draft, layer: Layer, target: Target) -> None:
    """acc_slots, bias_at; accumulator elements, slot keys and micro-ops of the whole kernel."""
    draft.tunable("acc_slots", range(1, target.limits.buffers + 1))
    draft.at_most("canonical_acc_slots", "acc_slots", "tiles", why="one tile needs one slot")
    draft.tunable("bias_at", range(len(BIAS_AT)), BIAS_AT)
    draft.require_rows(
        "canonical_bias_at",
        ["bias_at", "tile_order", *(f"many_{axis}" for axis in SPATIAL)],
        _bias_rows(),
        why="loading inside a loop that runs once is loading outside of it",
    )
    draft.constant("bias_once", layer.extents["co"])
    draft.select("bias_elements", "bias_at", ["tile_co", "tile_co", "bias_once"])
    draft.select("bias_loads", "bias_at", ["tiles", "wgt_tile_loads", "one"])
    draft.prod("bias_moved", "bias_loads", "bias_elements", coefficient=len(BIASES))
    draft.prod("acc_tiles", "tile_vectors", "acc_slots")
    draft.total("acc_resident", {"acc_tiles": 1, "bias_elements": len(BIASES)})
    depth = limits.scope_depth(target, "acc")
    draft.at_most("acc_sram", "acc_resident", depth, why=f"ACC holds {depth} vectors")
    _keys(draft)
    _uops(draft, target)


def bias_scope_steps(layer: Layer, point: Point) -> Iterator[Step]:
    """Bring biases and shifts into the accumulator memory."""
    del layer, point
    for name in BIASES:
        yield Step("cache_read", (name, "acc"))


def epilogue_steps(layer: Layer, point: Point) -> Iterator[Step]:
    """Load biases where the point says, and hand what is left to ALU and STORE."""
    loop = (tile_loop(layer, point), tile_loop(layer, point, "co"), None)[point["bias_at"]]
    for name in BIASES:
        if loop is not None:
            yield Step("compute_at", (f"{name}_acc", loop))
        yield Step("annotate", ("block", f"{name}_acc", "dma", "load"))
    yield Step("double_buffer", (layer.stage, point["acc_slots"]))
    for stage in ELEMENTWISE:
        yield Step("annotate", ("block", stage, "alu", 1))
    yield Step("annotate", ("block", "out", "dma", "store"))


def _bias_rows() -> Iterator[tuple[int, ...]]:
    for order, axes in enumerate(TILE_ORDERS):
        for code in range(1 << len(SPATIAL)):
            many = dict(zip(SPATIAL, ((code >> 2) & 1, (code >> 1) & 1, code & 1), strict=True))
            inside = any(many[axis] for axis in axes[axes.index("co") + 1 :])
            for at in range(len(BIAS_AT)):
                if (at != TILE or inside) and (at != CO or many["co"]):
                    yield (at, order, *(many[axis] for axis in SPATIAL))


def _keys(draft: Draft) -> None:
    most = limits.LARGEST_SLOT_KEY + 1
    why = f"the runtime's micro-op cache tells at most {most} cases of one kernel apart"
    draft.prod("gemm_keys", "operand_keys", "acc_slots")
    draft.at_most("slot_keys", "gemm_keys", most, why=why)
    draft.select("bias_cases", "bias_at", ["one", "one", "trips_co"])
    draft.prod("bias_keys", "bias_cases", "acc_slots")
    draft.at_most("slot_keys", "bias_keys", most, why=why)


def _uops(draft: Draft, target: Target) -> None:
    """GEMM micro-ops for every key; on whole tiles, resets and ALU operations need one a key."""
    draft.prod("all_gemm_uops", "gemm_uops", "gemm_keys")
    draft.total("uops", {"all_gemm_uops": 1, "bias_keys": 2, "acc_slots": 3})
    capacity = limits.uop_capacity(target)
    draft.at_most("uop_sram", "uops", capacity, why=f"UOP keeps {capacity} micro-ops")
