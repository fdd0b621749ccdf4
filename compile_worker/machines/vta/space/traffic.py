"""What a schedule moves and does, in closed form: the cost model's features, and one last limit."""

from __future__ import annotations

from tilefarm.target import Target

from compile_worker.draft import Draft
from compile_worker.machines.vta import limits
from compile_worker.machines.vta.space.copies import declare_copies
from compile_worker.machines.vta.space.layer import GemmLayer


def declare_traffic(draft: Draft, layer: GemmLayer, target: Target) -> None:
    """Copies, bytes and instructions."""
    vta = target.geometry
    declare_copies(draft, layer)
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
