"""Innermost loops of a CPU kernel are cut where their conditions change their mind.

    for w in 0:9: y[w] = select(2 <= w and w < 8, x[w - 2], 0)

    for w in 0:2: y[w] = 0
->  for w in 0:6: y[w + 2] = x[w]
    for w in 0:1: y[w + 8] = 0

What remains has fewer conditions, and the vectors of the middle part read memory in one piece.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from tilefarm.target import Target

from compile_worker.ir.affine import linear
from compile_worker.ir.expr import Expr, Le, Lt, Var
from compile_worker.ir.func import Func
from compile_worker.ir.simplify import simplify
from compile_worker.ir.stmt import Alloc, For, LoopKind, Stmt, sequence
from compile_worker.ir.visit import find, substitute
from compile_worker.passes.nests import descend, of_kind

_PARTS: Final = 4
"""Loops with more parts than this stay whole: code grows with every one."""


def partition_loops(func: Func, target: Target) -> Func:
    """Cut every innermost loop at the constants that its variable alone is compared with."""
    del target
    body = _cut(func.body)
    return func if body is func.body else Func(func.name, func.params, simplify(body), func.attrs)


def _cut(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, For):
        return descend(stmt, _cut)
    if any(of_kind(stmt.body, For)):
        return For(stmt.var, stmt.extent, _cut(stmt.body), stmt.kind, stmt.marks)
    if next(of_kind(stmt.body, Alloc), None) is not None:
        return stmt
    turns = sorted(_turns(stmt))
    if not turns or len(turns) >= _PARTS or stmt.kind is not LoopKind.SERIAL or stmt.marks:
        return stmt
    edges = [0, *turns, stmt.extent]
    return sequence(_part(stmt, begin, end, at) for at, (begin, end) in enumerate(pairwise(edges)))


def _turns(loop: For) -> set[int]:
    """Iterations, but the first, at which a condition differs from the one before."""
    found = set()
    for kind in (Lt, Le):
        for condition in find(loop.body, kind):
            at = _turn(condition.left - condition.right, loop.var, strict=kind is Lt)
            if at is not None and 0 < at < loop.extent:
                found.add(at)
    return found


def _turn(difference: Expr, var: Var, *, strict: bool) -> int | None:
    """Where `difference < 0` (strict) or `<= 0` changes, if nothing but the variable is in it."""
    terms, constant = linear(difference)
    if set(terms) != {var}:
        return None
    step, least = terms[var], constant + (0 if strict else -1)
    if step > 0:  # holds while var * step < -least
        return -(least // step)
    return least // -step + 1  # holds once var * -step > least


def _part(loop: For, begin: int, end: int, at: int) -> Stmt:
    var = Var(f"{loop.var.name}_p{at}")
    return For(var, end - begin, substitute(loop.body, {loop.var: var + begin if begin else var}))
