"""What a schedule moves and does, in closed form: the cost model's features, and one last limit.

Cycles are those of VTA's Chisel RTL (GEMM and immediate ALU operations N + 6, register ALU 2N + 6,
one more to start; loads: beats + 22; stores: 3 an element). Fires on every layer.
"""

from __future__ import annotations

from typing import Final

from tilefarm.target import Target

from compile_worker import limits
from compile_worker.space.constraints import Draft
from compile_worker.space.layer import Layer

START: Final = 7
"""Cycles of a GEMM or ALU instruction beyond one for each micro-op."""

LOAD_LATENCY: Final = 23
STORE_ELEMENT: Final = 3

ALU_INSTRUCTIONS: Final = 4
VECTOR_CYCLES: Final = 1 + 2 + 2 + 1 + 1
"""Cycles for one output vector: reset, add bias, shift by register, two clips."""


def declare_traffic(draft: Draft, layer: Layer, target: Target) -> None:
    """Loads, copies, bytes, instructions and cycles of each module."""
    vta = target.vta
    _copies(draft, layer)
    draft.prod("inp_nbytes", "inp_moved", coefficient=vta.inp_nbytes)
    draft.prod("wgt_nbytes", "wgt_moved", coefficient=vta.wgt_nbytes)
    draft.prod("acc_nbytes", "bias_moved", coefficient=vta.acc_nbytes)
    draft.total("dram_read_nbytes", {"inp_nbytes": 1, "wgt_nbytes": 1, "acc_nbytes": 1})
    draft.total(
        "instructions",
        {
            "steps": 4,
            "inp_copies": 1,
            "wgt_copies": 1,
            "bias_loads": 2,
            "out_copies": 1,
            "tiles": 7,
        },
        constant=8,
    )
    most = limits.instruction_capacity()
    draft.at_most("insn_queue", "instructions", most, why=f"the queue holds {most} instructions")
    _cycles(draft, layer, target)
    _prediction(draft, target)


def _cycles(draft: Draft, layer: Layer, target: Target) -> None:
    """How long each module is busy, and what cannot overlap: the first load, the last store."""
    vta, bus = target.vta, target.timing.bus_nbytes
    vectors, latency = layer.output_vectors, LOAD_LATENCY
    inp, wgt, acc = (n // bus for n in (vta.inp_nbytes, vta.wgt_nbytes, vta.acc_nbytes))
    instructions = START * (1 + ALU_INSTRUCTIONS)
    draft.total(
        "cycles_computing",
        {"steps": START, "tiles": instructions, "bias_moved": acc, "bias_loads": 2 * latency},
        constant=layer.gemm_cycles + VECTOR_CYCLES * vectors,
    )
    draft.total(
        "cycles_loading",
        {"inp_moved": inp, "wgt_moved": wgt, "inp_copies": latency, "wgt_copies": latency},
    )
    draft.total("cycles_storing", {"out_copies": 2}, constant=STORE_ELEMENT * vectors)
    first = {"inp_elements": inp, "wgt_elements": wgt}
    draft.total("cycles_first_load", first, constant=2 * latency)
    draft.total("cycles_last_store", {"tile_vectors": STORE_ELEMENT}, constant=latency)


def _prediction(draft: Draft, target: Target) -> None:
    """One estimate of a kernel's time, in quarters of a cycle.

    With one slot, computing waits for loading. With two they overlap, and the estimate is
    computing + loading / 4: constraints cannot say the larger of two, but this orders schedules as
    that does, except those that only load.
    """
    draft.constant("zero", 0)
    serial = {"cycles_computing": 4, "cycles_loading": 4}
    overlapped = {
        "cycles_computing": 4,
        "cycles_loading": 1,
        "cycles_first_load": 4,
        "cycles_last_store": 4,
    }
    draft.total("quarters_serial", serial)
    draft.total("quarters_overlapped", overlapped)
    more = target.limits.buffers - 1
    operands = ["zero", "quarters_serial", *["quarters_overlapped"] * more]
    draft.select("quarters_operands", "slots", operands)
    stores = ["zero", "cycles_storing", *["zero"] * more]
    draft.select("cycles_store_exposed", "acc_slots", stores)
    both = {"quarters_operands": 1, "cycles_store_exposed": 4}
    draft.total("predicted_quarter_cycles", both)


def _copies(draft: Draft, layer: Layer) -> None:
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
    draft.select("wgt_pieces", "weight_pieces", ["one", "tile_co", "tile_co_ci"])
    draft.prod("wgt_copies", "wgt_loads", "wgt_pieces")
    draft.constant("all_ci", layer.extents["ci"])
    draft.constant("all_ci_images", layer.extents["ci"] * layer.batches)
    pieces = ["tile_ci", "all_ci", "all_ci", "all_ci_images"]
    draft.select("inp_pieces", "data_at", pieces)
    draft.prod("inp_copies", "inp_loads", "inp_pieces")
    draft.prod("out_copies", "tiles", "tile_co")
