"""Loops of a CPU kernel that walk through memory as one become one.

    for h in 0:3: for w in 0:5: y[h*5 + w] = x[h*80 + w*16]  ->  for h_w in 0:15: y[h_w] = x[h_w*16]

A loop of one iteration disappears. What is left has fewer and longer innermost loops.
"""

from __future__ import annotations

from tilefarm.target import Target

from compile_worker.ir.affine import linear
from compile_worker.ir.expr import INDEX, Const, Expr, Var
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.simplify import simplify
from compile_worker.ir.stmt import For, LoopKind, Stmt
from compile_worker.ir.visit import children, mentioned, substitute
from compile_worker.passes.nests import descend


def merge_loops(func: Func, target: Target) -> Func:
    """Merge loops of a CPU kernel wherever every index allows it."""
    del target
    return Func(func.name, func.params, simplify(_merged(func.body)), func.attrs)


def _merged(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, For):
        return descend(stmt, _merged)
    body = _merged(stmt.body)
    if stmt.extent == 1 and not stmt.marks:
        return substitute(body, {stmt.var: Const(0, INDEX)})
    outer = For(stmt.var, stmt.extent, body, stmt.kind, stmt.marks)
    if not isinstance(body, For) or not (_plain(outer) and _plain(body)):
        return outer
    if not _as_one(body.body, outer.var, body):
        return outer
    both = Var(f"{outer.var.name}_{body.var.name}")
    inner = substitute(body.body, {outer.var: Const(0, INDEX), body.var: both})
    return For(both, outer.extent * body.extent, inner)


def _plain(loop: For) -> bool:
    return loop.kind is LoopKind.SERIAL and not loop.marks


def _as_one(node: Node, outer: Var, inner: For) -> bool:
    """Whether `outer` and the variable of `inner` occur as outer * extent + inner only."""
    if mentioned(node).isdisjoint((outer, inner.var)):
        return True
    if not isinstance(node, Expr) or node.dtype is not INDEX:
        return all(_as_one(child, outer, inner) for child in children(node))
    terms, _ = linear(node)
    if terms.pop(outer, 0) != inner.extent * terms.pop(inner.var, 0):
        return False
    return all(all(_as_one(child, outer, inner) for child in children(term)) for term in terms)
