"""Every on-chip buffer moves out of all loops and gets its place in its memory.

    for k: alloc inp x[2, 16] {copies=2}       alloc x {copies=2, base=0}
             alloc inp y[8]: ...          ->     alloc y {base=32}: for k: ...

Buffers of one memory lie one after the other for the whole function.
"""

from __future__ import annotations

from math import prod

from tilefarm.model import Memory
from tilefarm.target import Target

from compile_worker.ir.annotations import BASE, with_mark
from compile_worker.ir.expr import Buffer
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Seq, Stmt, sequence
from compile_worker.ir.visit import rewrite_statements
from compile_worker.passes.nests import of_kind


def place_sram(func: Func, target: Target) -> Func:
    """Hoist on-chip allocations and give each its first address, BASE."""
    memories = {memory.name: memory for memory in target.model.memories}
    used = dict.fromkeys(memories, 0)
    placed: list[Alloc] = []
    for alloc in of_kind(func.body, Alloc):
        scope = alloc.buffer.scope
        if scope in memories:
            marks = with_mark(alloc.marks, BASE(used[scope]))
            placed.append(Alloc(alloc.buffer, alloc.body, marks))
            used[scope] += addresses_of(alloc.buffer, memories[scope])
    if not placed:
        return func
    body: Stmt = rewrite_statements(func.body, _dropped)
    for alloc in reversed(placed):
        body = Alloc(alloc.buffer, body, alloc.marks)
    return Func(func.name, func.params, body, func.attrs)


def addresses_of(buffer: Buffer, memory: Memory) -> int:
    """How many addresses of a memory a buffer takes: several elements may share one."""
    return -(-prod(buffer.shape) // memory.elements)


def _dropped(node: Node) -> Node | None:
    match node:
        case Alloc(buffer, body) if buffer.on_chip:
            return body
        case Seq(stmts):
            return sequence(stmts)
        case _:
            return None
