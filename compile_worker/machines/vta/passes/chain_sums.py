"""Sums that are only added to others go on from them instead.

    for p in 2: s[p] = 0                            s[0] = 0
    for p in 2: for k: s[p] += a[k] * w[p, k]       for k: s[0] += a[k] * w[0, k]
    s[0] = s[0] * 256                         ->    s[0] = s[0] * 256
    s[0] = s[0] + s[1]                              for k: s[0] += a[k] * w[1, k]

Half of the accumulators, their reset and the addition go. All operands have to be there until the
end: where loads are between the steps of a reduction, its sums stay side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilefarm.target import Target

from compile_worker.ir.expr import Add, Buffer, Const, Expr, Load, index
from compile_worker.ir.func import Func
from compile_worker.ir.nests import Loops, perfect_nest, wrap
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Block, Seq, Stmt, Store, sequence
from compile_worker.ir.visit import mentioned, rewrite, rewrite_statements, substitute
from compile_worker.passes.nests import of_kind, uses


def chain_sums(func: Func, target: Target) -> Func:
    """Let accumulators that are only added to others of their buffer be those."""
    del target
    for alloc in of_kind(func.body, Alloc):
        if alloc.buffer.scope == "acc" and (body := _chained(func.body, alloc.buffer)) is not None:
            return Func(func.name, func.params, body, func.attrs)
    return func


@dataclass(frozen=True, slots=True)
class _Join:
    """A stage that adds one of two parts of a buffer to the other: x[to] = x[to] + x[part]."""

    buffer: Buffer
    axis: int
    to: Const
    part: Const


def _chained(body: Stmt, buffer: Buffer) -> Stmt | None:
    """The body with one part of a buffer instead of two; None where they are not joined so."""
    found = (
        (seq, at, join)
        for seq in of_kind(body, Seq)
        for at, stmt in enumerate(seq.stmts)
        if (join := _join_of(stmt, buffer)) is not None
    )
    tile, at, join = next(found, (None, 0, None))
    if tile is None or join is None or _accesses(body, buffer) != _accesses(tile, buffer):
        return None
    made = _one_after_the_other(tile.stmts[:at], tile.stmts[at + 1 :], join)
    if made is None:
        return None
    return _narrowed(rewrite_statements(body, lambda node: made if node is tile else None), join)


def _join_of(stmt: Stmt, buffer: Buffer) -> _Join | None:
    """What a nest joins, if that is what it does to all of a buffer."""
    loops, inner = perfect_nest(stmt)
    match inner:
        case Block(body=Store(to, at, Add(Load(own, same), Load(other, place)))):
            if not (to is own is other is buffer and at == same):
                return None
            axes = [d for d, (a, b) in enumerate(zip(at, place, strict=True)) if a is not b]
            if len(axes) == 1 and buffer.shape[axes[0]] == 2 and _is_whole(loops, at, to, axes[0]):
                to_part, part = at[axes[0]], place[axes[0]]
                if isinstance(to_part, Const) and isinstance(part, Const):
                    return _Join(buffer, axes[0], to_part, part)
    return None


def _is_whole(loops: Loops, at: tuple[Expr, ...], buffer: Buffer, but: int) -> bool:
    """Whether an index takes every value along all axes but one."""
    extents: dict[Expr, int] = {loop.var: loop.extent for loop in loops}
    others = [
        (e, size) for d, (e, size) in enumerate(zip(at, buffer.shape, strict=True)) if d != but
    ]
    running = [e for e, size in others if size > 1]
    return len(set(running)) == len(running) and all(
        extents.get(e, 1) == size for e, size in others
    )


def _one_after_the_other(
    before: Sequence[Stmt], behind: Sequence[Stmt], join: _Join
) -> Stmt | None:
    """The statements without the one that joins: sums of the second part behind all of the first.

    None where something else is done to the second part, or its operands are written over.
    """
    first: list[Stmt] = []
    second: list[Stmt] = []
    started = False
    for stmt in before:
        if join.buffer not in mentioned(stmt):
            if not _read(second).isdisjoint(_written(stmt)):
                return None
            first.append(stmt)
        elif _is_at(stmt, join, join.to):
            first.append(stmt)
        elif (parts := _parts(stmt, join)) is None or started == (len(parts) == 1):
            return None
        else:
            started = True
            first.append(parts[0])
            second += parts[1:]
    if not second or not all(_is_at(stmt, join, join.to) for stmt in behind):
        return None
    return sequence((*first, *second, *behind))


def _parts(stmt: Stmt, join: _Join) -> tuple[Stmt, ...] | None:
    """What a nest over both parts does to each; to the second one nothing where it starts sums.

    None if it is not a nest that starts sums from 0 or goes on with them.
    """
    loops, block = perfect_nest(stmt)
    over = next((loop for loop in loops if _is_at(stmt, join, loop.var)), None)
    if over is None or not isinstance(block, Block) or not isinstance(block.body, Store):
        return None
    others = [loop for loop in loops if loop is not over]

    def part(at: Const) -> Stmt:
        return wrap(others, substitute(block, {over.var: at}))

    store = block.body
    match store.value:
        case Const(0, _):
            return (part(join.to),)
        case Add(Load(buffer, at), more) if buffer is store.buffer and at == store.index:
            return None if buffer in mentioned(more) else (part(join.to), part(join.part))
        case _:
            return None


def _is_at(stmt: Stmt, join: _Join, place: Expr) -> bool:
    """Whether a statement works on the buffer at this place of the joined axis only."""
    accesses = uses(stmt).of.get(join.buffer, [])
    return all(access.index[join.axis] is place for access in accesses)


def _accesses(stmt: Stmt, buffer: Buffer) -> int:
    return len(uses(stmt).of[buffer])


def _read(stmts: Iterable[Stmt]) -> set[Buffer]:
    return {
        b
        for stmt in stmts
        for b, found in uses(stmt).of.items()
        if not all(each.writes for each in found)
    }


def _written(stmt: Stmt) -> set[Buffer]:
    return {b for b, found in uses(stmt).of.items() if any(each.writes for each in found)}


def _narrowed(body: Stmt, join: _Join) -> Stmt:
    """The body with one part of the buffer."""
    old, axis = join.buffer, join.axis
    shape = (*old.shape[:axis], 1, *old.shape[axis + 1 :])
    new = Buffer(old.name, shape, old.dtype, old.scope)

    def first(at: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return (*at[:axis], index(0), *at[axis + 1 :])

    def rule(node: Node) -> Node | None:
        match node:
            case Load(buffer, at) if buffer is old:
                return Load(new, first(at))
            case Store(buffer, at, value) if buffer is old:
                return Store(new, first(at), value)
            case Alloc(buffer, inside, marks) if buffer is old:
                return Alloc(new, inside, marks)
            case _:
                return None

    return rewrite(body, rule)
