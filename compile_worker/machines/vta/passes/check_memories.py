"""Refuses a function whose on-chip buffers do not fit their memories; changes nothing.

Early, so that a schedule that asks for too much is refused by that name and not by an instruction
field that happens to be too narrow for it.
"""

from __future__ import annotations

from typing import Final

from tilefarm.target import Target

from compile_worker.errors import require
from compile_worker.ir.annotations import SLOTS
from compile_worker.ir.func import Func
from compile_worker.machines.vta.limits import SramScope, scope_fits
from compile_worker.machines.vta.passes.elements import elements_of
from compile_worker.machines.vta.passes.turns import homes, trips

STAGE: Final = "check_memories"


def check_memories(func: Func, target: Target) -> Func:
    """Add up the elements of every memory, all slots included.

    Raises:
        Refused: `inp_sram`, `wgt_sram` or `acc_sram`.
    """
    used: dict[SramScope, int] = {"inp": 0, "wgt": 0, "acc": 0}
    for alloc, path in homes(func.body):
        for scope in used:
            if alloc.buffer.scope == scope:
                copies = min(SLOTS.of(alloc), trips(path))
                used[scope] += copies * elements_of(alloc.buffer)
    for scope, elements in used.items():
        require(STAGE, scope_fits(target, scope, elements))
    return func
