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
from compile_worker.ir.nests import Loops, perfect_nest, wrap
from compile_worker.ir.stmt import Block, Seq, Stmt, Store, sequence
from compile_worker.ir.visit import variables

Place: TypeAlias = tuple[Buffer, tuple[Expr, ...]]
"""An element that is stored."""


def nest_of_block(stmt: Stmt, name: str) -> Stmt:
    """The loops that hold one another around what is left, as the block of that name."""
    loops, held = perfect_nest(stmt)
    over = tuple(loop.var for loop in loops if not independent(loop.var, held))
    found = None if over else reduction(held, name)
    inner, block = found or ((), Block(name, held, None, over))
    return wrap((*loops, *inner), block)


def as_written(loops: Loops, block: Block) -> Stmt:
    """What `nest_of_block` has made these loops around a block of."""
    if block.init is None:
        return wrap(loops, block.body)
    spatial = tuple(loop for loop in loops if loop.var not in block.reductions)
    reduced = tuple(loop for loop in loops if loop.var in block.reductions)
    return wrap(spatial, sequence([block.init, wrap(reduced, block.body)]))


def reduction(stmt: Stmt, name: str) -> tuple[Loops, Block] | None:
    """Stores that start, then loops around stores that go on with the same elements."""
    if not isinstance(stmt, Seq):
        return None
    *starts, last = stmt.stmts
    loops, updates = perfect_nest(last)
    begun, changed = stored_places(starts), stored_places(statements(updates))
    over = tuple(loop.var for loop in loops)
    if not loops or begun is None or begun != changed:
        return None
    if any(variables(at) & {*over} for _, index in begun for at in index):
        return None
    init = starts[0] if len(starts) == 1 else Seq(tuple(starts))
    return loops, Block(name, updates, init, over)


def statements(stmt: Stmt) -> tuple[Stmt, ...]:
    """Those of a sequence, or the one that it is."""
    return stmt.stmts if isinstance(stmt, Seq) else (stmt,)


def stored_places(stmts: Sequence[Stmt]) -> frozenset[Place] | None:
    """Where stores store; None if one is something else, or two store at one place."""
    found = frozenset((s.buffer, s.index) for s in stmts if isinstance(s, Store))
    return found if len(found) == len(stmts) else None
