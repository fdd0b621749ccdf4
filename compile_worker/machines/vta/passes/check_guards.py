"""Refuses guards that the accelerator's instructions cannot be put behind; changes nothing.

    for h in 0:3: if h < 2: block out {dma=store}      goes: the host queues a copy or does not
    for h in 0:3: if h < 2: load, multiply, store      is refused

Tokens between loads, computation and stores count iterations, so none of them may be left out
without the others.
"""

from __future__ import annotations

from typing import Final

from tilefarm.target import Target

from compile_worker.errors import Violation, require
from compile_worker.ir.annotations import ALU, DMA, TENSORIZE
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Block, If
from compile_worker.passes.nests import of_kind

STAGE: Final = "check_guards"

_DEVICE: Final = (DMA, ALU, TENSORIZE)


def check_guards(func: Func, target: Target) -> Func:
    """Look for guards around more than one block that the accelerator does.

    Raises:
        Refused: `guard`.
    """
    del target
    for guard in of_kind(func.body, If):
        inside = of_kind(guard, Block)
        names = [block.name for block in inside if any(each.is_on(block) for each in _DEVICE)]
        if len(names) > 1:
            why = f"one guard around {', '.join(names)}: pad loops of one stage, not of several"
            require(STAGE, Violation("guard", why))
    return func
