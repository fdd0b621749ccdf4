"""Loops marked to be unrolled are written out.

    unrolled i in 0:2: y[i*4] = x[i]       ->       y[0] = x[0]
                                                    y[4] = x[1]

Loops inside get names of their own in each copy. What would be more than MOST stores stays a loop.
"""

from __future__ import annotations

from typing import Final

from tilefarm.target import Target

from compile_worker.ir.expr import INDEX, Const, Expr, Var
from compile_worker.ir.func import Func
from compile_worker.ir.simplify import simplify
from compile_worker.ir.stmt import Alloc, For, LoopKind, Stmt, Store, sequence
from compile_worker.ir.visit import find, substitute
from compile_worker.passes.nests import descend, of_kind

MOST: Final = 4096
"""Stores that a loop is written out to, at most: compiling them takes longer than running them."""


def unroll_loops(func: Func, target: Target) -> Func:
    """Replace each loop of the kind "unrolled" by copies of its body."""
    del target
    if not any(loop.kind is LoopKind.UNROLLED for loop in of_kind(func.body, For)):
        return func
    body = simplify(_unrolled(func.body))
    return Func(func.name, func.params, body, func.attrs)


def _unrolled(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, For):
        return descend(stmt, _unrolled)
    body = _unrolled(stmt.body)
    large = _stores(body) > MOST // stmt.extent
    if stmt.kind is not LoopKind.UNROLLED or large or has_storage(body):
        return For(stmt.var, stmt.extent, body, stmt.kind, stmt.marks)
    return sequence(_copy(stmt.var, body, at) for at in range(stmt.extent))


def _stores(stmt: Stmt) -> int:
    return sum(1 for _ in of_kind(stmt, Store))


def has_storage(stmt: Stmt) -> bool:
    """Whether storage begins in a statement: two copies would need two names for it."""
    return next(of_kind(stmt, Alloc), None) is not None


def _copy(var: Var, body: Stmt, at: int) -> Stmt:
    values: dict[Var, Expr] = {var: Const(at, INDEX)}
    renamed = {loop.var: Var(f"{loop.var.name}_{at}") for loop in find(body, For)}
    return substitute(body, {**values, **renamed})
