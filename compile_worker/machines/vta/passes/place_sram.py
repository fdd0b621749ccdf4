"""Every on-chip buffer moves out of all loops and gets its place in its memory.

    for k: alloc inp x[2, 16] {copies=2}       alloc x {copies=2, base=0}
             alloc inp y[8]: ...          ->     alloc y {base=32}: for k: ...

Buffers of one memory lie one after the other for the whole function.
"""

from __future__ import annotations

from tilefarm.target import Target

from compile_worker.ir.annotations import BASE, with_mark
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Seq, Stmt, sequence
from compile_worker.ir.visit import rewrite_statements
from compile_worker.machines.vta.limits import SramScope
from compile_worker.machines.vta.passes.elements import elements_of
from compile_worker.passes.nests import of_kind


def place_sram(func: Func, target: Target) -> Func:
    """Hoist on-chip allocations and give each its first element, BASE."""
    del target
    used: dict[SramScope, int] = {"inp": 0, "wgt": 0, "acc": 0}
    placed: list[Alloc] = []
    for alloc in of_kind(func.body, Alloc):
        for scope in used:
            if alloc.buffer.scope == scope:
                marks = with_mark(alloc.marks, BASE(used[scope]))
                placed.append(Alloc(alloc.buffer, alloc.body, marks))
                used[scope] += elements_of(alloc.buffer)
    if not placed:
        return func
    body: Stmt = rewrite_statements(func.body, _dropped)
    for alloc in reversed(placed):
        body = Alloc(alloc.buffer, body, alloc.marks)
    return Func(func.name, func.params, body, func.attrs)


def _dropped(node: Node) -> Node | None:
    match node:
        case Alloc(buffer, body) if buffer.on_chip:
            return body
        case Seq(stmts):
            return sequence(stmts)
        case _:
            return None
