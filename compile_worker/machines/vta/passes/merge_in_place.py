"""Element-wise stages on the accelerator work in place when what they read is not needed again.

    alloc t acc: for i: block s: s[i] = ...        for i: block s: s[i] = ...
      for i: block t: t[i] = max(s[i], 0)      ->  for i: block t: s[i] = max(s[i], 0)
      for i: block out: out[i] = t[i]              for i: block out: out[i] = s[i]

The ALU writes over its first operand, so this is what makes such a stage an ALU operation at all.
What is read may have one axis more, with a constant there: the stage then lives in that part.

    t[i] = s[0, i] * 256            s[0, i] = s[0, i] * 256
    u[i] = t[i] + s[1, i]      ->   s[0, i] = s[0, i] + s[1, i]

A sum that goes on from another stage's value starts with a copy of it, which goes: it is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilefarm.target import Target

from compile_worker.ir.annotations import SLOTS, with_mark
from compile_worker.ir.expr import Buffer, Const, Expr, Load
from compile_worker.ir.func import Func
from compile_worker.ir.nests import perfect_nest
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import NOTHING, Alloc, Block, For, Mark, Stmt, Store
from compile_worker.ir.visit import find, replace_buffers, rewrite, rewrite_statements
from compile_worker.passes.nests import Access, descend, of_kind, uses


@dataclass(frozen=True, slots=True)
class _Home:
    """The buffer that a stage shares, and the constants that its indices have at axes more.

    They are added in turn: the first is an axis of what the last stage shares.
    """

    buffer: Buffer
    parts: tuple[tuple[int, Const], ...] = ()

    def index(self, at: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Where in the home an element of the stage's own buffer is."""
        for axis, part in self.parts:
            at = (*at[:axis], part, *at[axis:])
        return at


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

    body = _in_parts(rewrite_statements(func.body, drop), merged)
    body = replace_buffers(body, {old: home.buffer for old, home in merged.items()})
    return Func(func.name, func.params, _without_self_copies(body), func.attrs)


def _in_parts(body: Stmt, merged: Mapping[Buffer, _Home]) -> Stmt:
    """The body with those buffers replaced that live in a part of another one."""
    parts = {old: home for old, home in merged.items() if home.parts}

    def rule(node: Node) -> Node | None:
        match node:
            case Load(buffer, index) if buffer in parts:
                return Load(parts[buffer].buffer, parts[buffer].index(index))
            case Store(buffer, index, value) if buffer in parts:
                return Store(parts[buffer].buffer, parts[buffer].index(index), value)
            case _:
                return None

    return rewrite(body, rule) if parts else body


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
) -> dict[Buffer, _Home]:
    """Buffer that goes -> where it lives from now on."""
    merged: dict[Buffer, _Home] = {}
    for block in of_kind(func.body, Block):
        store = block.body
        if not isinstance(store, Store) or store.buffer not in candidates:
            continue
        for load in find(store.value, Load):
            source = load.buffer
            if source not in candidates or source is store.buffer:
                continue
            found = _home(store, load)
            if found is None or not _last_reader(block, found, accesses[source]):
                continue
            outer = merged.get(source, _Home(source))
            merged[store.buffer] = _Home(outer.buffer, (*found.parts, *outer.parts))
            break
    return merged


def _home(store: Store, load: Load) -> _Home | None:
    """What is read as a home of what is stored: at the same index, apart from one constant."""
    own, source = store.buffer, load.buffer
    if (own.dtype, own.scope) != (source.dtype, source.scope):
        return None
    if (own.shape, store.index) == (source.shape, load.index):
        return _Home(source)
    for axis, at in enumerate(load.index):
        shape = (*source.shape[:axis], *source.shape[axis + 1 :])
        index = (*load.index[:axis], *load.index[axis + 1 :])
        if isinstance(at, Const) and (own.shape, store.index) == (shape, index):
            return _Home(source, ((axis, at),))
    return None


def _last_reader(block: Block, home: _Home, accesses: Sequence[Access]) -> bool:
    """Whether only the blocks that write a home, and this one, read it, or that part of it."""
    writers = {a.block for a in accesses if a.writes}
    return block not in writers and all(
        a.block is block or a.block in writers or _elsewhere(a.index, home)
        for a in accesses
        if not a.writes
    )


def _elsewhere(index: tuple[Expr, ...], home: _Home) -> bool:
    """Whether an access is to another part than the one that is lived in."""
    if not home.parts:
        return False
    ((axis, part),) = home.parts
    at = index[axis]
    return isinstance(at, Const) and at is not part


def _slots(
    allocs: Sequence[Alloc], merged: Mapping[Buffer, _Home]
) -> dict[Buffer, tuple[Mark, ...]]:
    """Marks of buffers that stay: as many slots as the most that any of the merged ones asked."""
    most: dict[Buffer, int] = {}
    for alloc in allocs:
        home = merged[alloc.buffer].buffer if alloc.buffer in merged else alloc.buffer
        most[home] = max(most.get(home, 1), SLOTS.of(alloc))
    return {
        a.buffer: with_mark(a.marks, SLOTS(most[a.buffer]))
        for a in allocs
        if a.buffer not in merged
    }
