"""Refuses a function whose on-chip buffers do not fit their memories; changes nothing.

Early, so that a schedule that asks for too much is refused by that name and not by an instruction
field that happens to be too narrow for it.
"""

from __future__ import annotations

from typing import Final

from tilefarm.model import Memory
from tilefarm.plural import plural
from tilefarm.target import Target

from compile_worker.errors import Violation, require
from compile_worker.ir.annotations import SLOTS
from compile_worker.ir.func import Func
from compile_worker.passes.place_sram import addresses_of
from compile_worker.passes.turns import homes, trips

STAGE: Final = "check_memories"


def check_memories(func: Func, target: Target) -> Func:
    """Add up the addresses that are taken of every memory, all slots included.

    Raises:
        Refused: one is too small; the limit's name is the memory's and `_sram`.
    """
    allocations = [*homes(func.body)]
    for memory in target.model.memories:
        taken = sum(
            min(SLOTS.of(alloc), trips(path)) * addresses_of(alloc.buffer, memory)
            for alloc, path in allocations
            if alloc.buffer.scope == memory.name
        )
        require(STAGE, memory_fits(memory, taken))
    return func


def memory_fits(memory: Memory, elements: int) -> Violation | None:
    """Whether everything that lives in one memory at once, all slots included, fits into it."""
    if elements <= memory.depth:
        return None
    why = f"{plural(elements, 'element')} in {memory.name}, which holds {memory.depth}"
    return Violation(f"{memory.name}_sram", why)
