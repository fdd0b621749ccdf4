"""Products with what is around an image are left out of a sum: they are zero.

    for k: for o: s[o] = s[o] + select(1 <= h + k, x[h + k - 1], 0) * w[k, o]

->  for k: if 1 <= h + k: for o: s[o] = s[o] + x[h + k - 1] * w[k, o]

A condition goes outside of all loops that do not decide it, and around neighbours that have it in
common. A sum whose innermost loop decides it stays as it is: vectors have no branches. Only sums of
integers are cut: zero times infinity is not zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from tilefarm.target import Target

from compile_worker.ir.accesses import conjuncts
from compile_worker.ir.expr import Add, And, Cast, Const, Expr, Load, Mul, Select
from compile_worker.ir.func import Func
from compile_worker.ir.nests import perfect_nest, wrap
from compile_worker.ir.simplify import simplify
from compile_worker.ir.stmt import NOTHING, For, If, Seq, Stmt, Store, sequence
from compile_worker.ir.visit import mentioned, reads_memory
from compile_worker.passes.nests import descend


def skip_zeros(func: Func, target: Target) -> Func:
    """Branch around products that are zero because of where they are."""
    del target
    body = _skipping(func.body)
    return func if body is func.body else Func(func.name, func.params, simplify(body), func.attrs)


def _skipping(stmt: Stmt) -> Stmt:
    loops, inner = perfect_nest(stmt)
    if isinstance(inner, Store):
        return _around(loops, inner) or stmt
    match stmt:
        case For():
            return _outside_of(stmt, _skipping(stmt.body))
        case Seq(stmts):
            return _with_common([_skipping(each) for each in stmts])
        case _:
            return descend(stmt, _skipping)


def _around(loops: Sequence[For], store: Store) -> Stmt | None:
    """The nest with branches between its loops; None if there is nothing to leave out."""
    match store.value:
        case Load(buffer, index) if (buffer, index) == (store.buffer, store.index):
            return NOTHING  # what is left of a product that is zero for all that is known here
        case Add(Load(buffer, index) as total, Mul(left, right)) if (buffer, index) == (
            store.buffer,
            store.index,
        ) and total.dtype.is_integer:
            (one, where), (other, elsewhere) = _factor(left), _factor(right)
            conditions = (*where, *elsewhere)
        case _:
            return None
    if not conditions or not loops or any(loops[-1].var in mentioned(c) for c in conditions):
        return None
    inner: Stmt = Store(store.buffer, store.index, Add(total, Mul(one, other)))
    inner = _guarded(conditions, wrap(loops[-1:], inner))
    for loop in reversed(loops[:-1]):
        inner = _outside_of(loop, inner)
    return inner


def _factor(expr: Expr) -> tuple[Expr, tuple[Expr, ...]]:
    """What a factor is, and where it is not zero."""
    match expr:
        case Cast(dtype, value):
            inner, conditions = _factor(value)
            return (Cast(dtype, inner) if conditions else expr), conditions
        case Select(condition, value, Const(value=0)) if not reads_memory(condition):
            return value, conjuncts(condition)
        case _:
            return expr, ()


def _outside_of(loop: For, body: Stmt) -> Stmt:
    """The loop around another body, with the conditions that it does not decide around it."""
    if body is NOTHING:
        return NOTHING
    conditions, then = _branch(body)
    apart = tuple(each for each in conditions if loop.var not in mentioned(each))
    if not apart:
        return For(loop.var, loop.extent, body, loop.kind, loop.marks)
    rest = _guarded([each for each in conditions if each not in apart], then)
    return _guarded(apart, For(loop.var, loop.extent, rest, loop.kind, loop.marks))


def _with_common(stmts: Sequence[Stmt]) -> Stmt:
    """Statements in a row, with the conditions that all of them have around them."""
    branches = [_branch(each) for each in stmts if each is not NOTHING]
    if not branches:
        return NOTHING
    first, _ = branches[0]
    common = [each for each in first if all(each in conditions for conditions, _ in branches)]
    return _guarded(
        common,
        sequence(_guarded([c for c in own if c not in common], then) for own, then in branches),
    )


def _branch(stmt: Stmt) -> tuple[tuple[Expr, ...], Stmt]:
    """The conditions of a branch that has no other side, and what it does then."""
    if isinstance(stmt, If) and stmt.otherwise is None and not reads_memory(stmt.condition):
        return conjuncts(stmt.condition), stmt.then
    return (), stmt


def _guarded(conditions: Iterable[Expr], then: Stmt) -> Stmt:
    wanted = tuple(dict.fromkeys(conditions))
    return If(reduce(And, wanted), then) if wanted else then
