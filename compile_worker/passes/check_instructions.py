"""Refuses a function whose instruction stream the runtime could not hold; changes nothing.

Micro-ops stay resident for the whole function, in one copy for every slot key, and the runtime keys
them by a small number. A queue that runs full would be synchronized in the midst of tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilefarm.target import Target

from compile_worker.errors import require
from compile_worker.ir.expr import Var
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, Dma, For, If, MicroKernel, Seq, Stmt
from compile_worker.limits import instructions_fit, slot_keys_fit, uops_fit
from compile_worker.passes.nests import of_kind
from compile_worker.passes.slots import combinations, digits_of

STAGE: Final = "check_instructions"

CLOSING: Final = 4
"""Instructions that a synchronization adds."""


def check_instructions(func: Func, target: Target) -> Func:
    """Count what the whole function records and queues.

    Raises:
        Refused: `slot_keys`, `uop_sram` or `insn_queue`.
    """
    extents: Mapping[Var, int] = {loop.var: loop.extent for loop in of_kind(func.body, For)}
    uops = loads = 0
    for kernel in of_kind(func.body, MicroKernel):
        keys = combinations(digits_of(kernel, extents))
        require(STAGE, slot_keys_fit(keys))
        uops += keys * len(kernel.uops)
        loads += keys
    require(STAGE, uops_fit(target, uops))
    require(STAGE, instructions_fit(_queued(func.body) + loads + CLOSING))
    return func


def _queued(stmt: Stmt) -> int:
    """How many copies and micro-op kernels are executed."""
    match stmt:
        case For(extent=extent, body=body):
            return extent * _queued(body)
        case Seq(stmts):
            return sum(map(_queued, stmts))
        case Alloc(body=body) | If(then=body):
            return _queued(body)
        case _:
            return int(isinstance(stmt, Dma | MicroKernel))
