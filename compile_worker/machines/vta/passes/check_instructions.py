"""Refuses a function whose instruction stream the runtime could not hold; changes nothing.

Micro-ops stay resident for the whole function, in one copy for every slot key. A queue that runs
full would be synchronized in the midst of tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tilefarm.target import Target

from compile_worker.errors import require
from compile_worker.ir.expr import Var
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, Dma, For, If, MicroKernel, Seq, Stmt
from compile_worker.machines.vta.limits import instructions_fit, uops_fit
from compile_worker.machines.vta.passes.slots import recorded_keys
from compile_worker.passes.nests import of_kind

STAGE: Final = "check_instructions"

CLOSING: Final = 4
"""Instructions that a synchronization adds."""


@dataclass(frozen=True, slots=True)
class StreamSize:
    """What a function leaves with the runtime: micro-ops that stay, instructions until it waits."""

    uops: int
    instructions: int


def check_instructions(func: Func, target: Target) -> Func:
    """Count what the whole function records and queues.

    Raises:
        Refused: `uop_sram` or `insn_queue`.
    """
    stream = stream_of(func)
    require(STAGE, uops_fit(target, stream.uops))
    require(STAGE, instructions_fit(stream.instructions + CLOSING))
    return func


def stream_of(func: Func) -> StreamSize:
    """The size of a function's stream; every slot key loads its micro-ops once."""
    recorded = _recorded(func)
    uops = sum(keys * len(kernel.uops) for kernel, keys in recorded)
    return StreamSize(uops, _queued(func.body) + sum(keys for _, keys in recorded))


def _recorded(func: Func) -> list[tuple[MicroKernel, int]]:
    """Every micro-op kernel with the number of its slot keys."""
    extents: Mapping[Var, int] = {loop.var: loop.extent for loop in of_kind(func.body, For)}
    kernels = of_kind(func.body, MicroKernel)
    return [(kernel, recorded_keys(kernel, extents)) for kernel in kernels]


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
