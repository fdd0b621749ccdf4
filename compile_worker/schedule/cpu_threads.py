"""Which loop of a kernel the threads of a processor share, where no search has chosen one.

    for co in 0:4: for h in 0:56: ...   ->   parallel co in 0:4: for h in 0:56: ...

The outermost loop of the output, if the target computes with threads and the kernel is long enough
to be worth a round of them (`codegen.pool`). Where other stages stay beside it, it runs alone.
"""

from __future__ import annotations

from typing import Final

from tilefarm.target import Target
from tilefarm.trace import Step, Trace

from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, Block, For, If, LoopKind, Seq, Stmt
from compile_worker.ir.visit import find
from compile_worker.schedule import replay

GRAIN: Final = 1 << 17
"""Innermost iterations that are worth a round: some ten microseconds of vectors, where a round of
threads that are awake takes one."""


def shared(trace: Trace, nest: Func, target: Target) -> Trace:
    """The trace, with a step that shares the outermost loop among the target's threads."""
    if target.model.threads == 1:
        return trace
    scheduled = replay(trace, nest, target)
    if any(loop.kind is LoopKind.PARALLEL for loop in find(scheduled.body, For)):
        return trace
    loop = _outermost(scheduled.body)
    if loop is None or loop.extent < target.model.threads or work(scheduled.body) < GRAIN:
        return trace
    return Trace((*trace.steps, Step("parallel", (loop.var.name,))))


def work(stmt: Stmt) -> int:
    """How often the statements of a kernel are computed, all loops counted."""
    match stmt:
        case For(extent=extent, body=body):
            return extent * work(body)
        case Seq(stmts):
            return sum(map(work, stmts))
        case Alloc(body=body) | Block(body=body) | If(then=body):
            return work(body)
        case _:
            return 1


def _outermost(stmt: Stmt) -> For | None:
    """The first loop with several iterations around the last stage, if nobody reduces over it."""
    match stmt:
        case Seq(stmts):
            return _outermost(stmts[-1])
        case Alloc(body=body):
            return _outermost(body)
        case For(extent=1, body=body):
            return _outermost(body)
        case For(var=var, kind=LoopKind.SERIAL):
            reduced = any(var in block.reductions for block in find(stmt, Block))
            return None if reduced else stmt
        case _:
            return None
