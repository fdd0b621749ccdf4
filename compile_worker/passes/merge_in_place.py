"""Element-wise stages on the accelerator work in place when what they read is not needed again.

    alloc t acc: for i: block s: s[i] = ...        for i: block s: s[i] = ...
      for i: block t: t[i] = max(s[i], 0)      ->  for i: block t: s[i] = max(s[i], 0)
      for i: block out: out[i] = t[i]              for i: block out: out[i] = s[i]

The ALU writes over its first operand, so this is what makes such a stage an ALU operation at all.
A sum that goes on from another stage's value starts with a copy of it, which goes: it is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilefarm.target import Target

from compile_worker.ir.expr import Buffer, Load
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import NOTHING, Alloc, Block, For, Mark, Stmt, Store
from compile_worker.ir.visit import find, replace_buffers, rewrite_statements
from compile_worker.passes.nests import Access, descend, of_kind, perfect_nest, uses


def merge_in_place(func: Func, target: Target) -> Func:
    """Let element-wise stages share the buffer of the stage they read."""
    del target
    allocs = [a for a in of_kind(func.body, Alloc) if a.buffer.scope == "acc"]
    if not allocs:
        return func
    merged = _merged({a.buffer for a in allocs}, uses(func.body).of, func)
    if not merged:
        return func
    slots = _slots(allocs, merged)

    def drop(node: Node) -> Node | None:
        if not isinstance(node, Alloc):
            return None
        if node.buffer in merged:
            return node.body
        marks = slots.get(node.buffer, node.marks)
        return Alloc(node.buffer, node.body, marks)

    body = replace_buffers(rewrite_statements(func.body, drop), merged)
    return Func(func.name, func.params, _without_self_copies(body), func.attrs)


def _without_self_copies(body: Stmt) -> Stmt:
    """The body without nests that store every element where it is already."""

    def visit(stmt: Stmt) -> Stmt:
        _, inner = perfect_nest(stmt)
        match inner:
            case Block(body=Store(buffer, index, Load(source, at))):
                return NOTHING if (buffer, index) == (source, at) else stmt
            case Block():
                return stmt
        match stmt:
            case For(var, extent, inside, kind, marks):
                return For(var, extent, visit(inside), kind, marks)
            case _:
                return descend(stmt, visit)

    return visit(body)


def _merged(
    candidates: set[Buffer], accesses: Mapping[Buffer, Sequence[Access]], func: Func
) -> dict[Buffer, Buffer]:
    """Buffer that goes -> buffer that it shares from now on."""
    merged: dict[Buffer, Buffer] = {}
    for block in of_kind(func.body, Block):
        store = block.body
        if not isinstance(store, Store) or store.buffer not in candidates:
            continue
        for load in find(store.value, Load):
            source = load.buffer
            if source not in candidates or source is store.buffer or load.index != store.index:
                continue
            if _alike(source, store.buffer) and _last_reader(block, accesses[source]):
                merged[store.buffer] = merged.get(source, source)
                break
    return merged


def _alike(one: Buffer, other: Buffer) -> bool:
    return (one.shape, one.dtype, one.scope) == (other.shape, other.dtype, other.scope)


def _last_reader(block: Block, accesses: Sequence[Access]) -> bool:
    """Whether only the blocks that write a buffer, and this one, read it."""
    writers = {a.block for a in accesses if a.writes}
    return block not in writers and all(
        a.block is block or a.block in writers for a in accesses if not a.writes
    )


def _slots(
    allocs: Sequence[Alloc], merged: Mapping[Buffer, Buffer]
) -> dict[Buffer, tuple[Mark, ...]]:
    """Marks of buffers that stay: as many slots as the most that any of the merged ones asked."""
    most: dict[Buffer, int] = {}
    for alloc in allocs:
        home = merged.get(alloc.buffer, alloc.buffer)
        most[home] = max(most.get(home, 1), int(dict(alloc.marks).get("slots", 1)))
    return {
        a.buffer: (*(m for m in a.marks if m[0] != "slots"), ("slots", most[a.buffer]))
        for a in allocs
        if a.buffer not in merged
    }
