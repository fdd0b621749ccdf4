"""Perfect nests: loops that hold one another and nothing else, with guards between them.

Guards float: each is as far out as the loops that it depends on let it be, so that what is inside
stays a plain nest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from compile_worker.ir.accesses import conjuncts
from compile_worker.ir.expr import And, Expr
from compile_worker.ir.stmt import For, If, Stmt
from compile_worker.ir.visit import variables


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops, outermost first, the conditions of all guards between and below them, and the rest."""

    loops: tuple[For, ...]
    guards: tuple[Expr, ...]
    body: Stmt


def perfect(stmt: Stmt) -> Nest:
    """The loops from `stmt` down to the first that holds other things as well."""
    loops: list[For] = []
    guards: list[Expr] = []
    while True:
        match stmt:
            case For(body=body):
                loops.append(stmt)
                stmt = body
            case If(condition, then, None):
                guards += conjuncts(condition)
                stmt = then
            case _:
                return Nest(tuple(loops), tuple(guards), stmt)


def rebuilt(loops: Sequence[For], guards: Sequence[Expr], body: Stmt) -> Stmt:
    """The loops in this order around `body`, each guard as far out as it can be."""
    rest = list(guards)
    for loop in reversed(loops):
        body = guarded([guard for guard in rest if loop.var in variables(guard)], body)
        rest = [guard for guard in rest if loop.var not in variables(guard)]
        body = For(loop.var, loop.extent, body, loop.kind, loop.marks)
    return guarded(rest, body)


def guarded(guards: Sequence[Expr], body: Stmt) -> Stmt:
    """`body` where all of the conditions hold; just `body` without any."""
    return If(reduce(And, guards), body) if guards else body
