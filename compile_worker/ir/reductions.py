"""Loops around a block as schedules want them, of loops and statements as they are written.

    for i in 4:                              for i in 4: for k in 8:
      out[i] = 0                     ->        block out over k
      for k in 8: out[i] = out[i] + x[i, k]      init: out[i] = 0
                                                 out[i] = out[i] + x[i, k]

A loop whose iterations need one another is one that the block reduces over, too: schedules leave
its order alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from compile_worker.ir.expr import Buffer, Expr
from compile_worker.ir.independence import independent
from compile_worker.ir.stmt import Block, For, Seq, Stmt, Store
from compile_worker.ir.visit import variables

Place: TypeAlias = tuple[Buffer, tuple[Expr, ...]]
"""An element that is stored."""


def perfect_nest(stmt: Stmt, name: str) -> Stmt:
    """The loops that hold one another around what is left, as the block of that name."""
    loops: list[For] = []
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    over = tuple(loop.var for loop in loops if not independent(loop.var, stmt))
    found = None if over else reduction(stmt, name)
    inner, block = found or ([], Block(name, stmt, None, over))
    whole: Stmt = block
    for loop in reversed([*loops, *inner]):
        whole = For(loop.var, loop.extent, whole, loop.kind, loop.marks)
    return whole


def reduction(stmt: Stmt, name: str) -> tuple[list[For], Block] | None:
    """Stores that start, then loops around stores that go on with the same elements."""
    if not isinstance(stmt, Seq):
        return None
    *starts, last = stmt.stmts
    loops: list[For] = []
    while isinstance(last, For):
        loops.append(last)
        last = last.body
    begun, changed = stored_places(starts), stored_places(statements(last))
    over = tuple(loop.var for loop in loops)
    if not loops or begun is None or begun != changed:
        return None
    if any(variables(at) & {*over} for _, index in begun for at in index):
        return None
    init = starts[0] if len(starts) == 1 else Seq(tuple(starts))
    return loops, Block(name, last, init, over)


def statements(stmt: Stmt) -> tuple[Stmt, ...]:
    """Those of a sequence, or the one that it is."""
    return stmt.stmts if isinstance(stmt, Seq) else (stmt,)


def stored_places(stmts: Sequence[Stmt]) -> frozenset[Place] | None:
    """Where stores store; None if one is something else, or two store at one place."""
    found = frozenset((s.buffer, s.index) for s in stmts if isinstance(s, Store))
    return found if len(found) == len(stmts) else None
