"""Whose turn it is: counting the iterations of the loops around a place.

for a in 0:3: for b in 0:4: here      ->   12 trips, turn a*4 + b
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from compile_worker.ir.affine import Affine
from compile_worker.ir.expr import INDEX, Const, Expr, FloorMod, Var
from compile_worker.ir.nests import Loops
from compile_worker.ir.stmt import Alloc, For, If, Seq, Stmt


def trips(loops: Sequence[For]) -> int:
    """How often the body of a nest runs."""
    return prod(loop.extent for loop in loops)


def turn(loops: Sequence[For], *, of: int | None = None) -> Affine:
    """How many iterations of a nest came before this one.

    With `of`, only the outermost `of` loops have begun; those inside are at 0.
    """
    terms: dict[Var, int] = {}
    for depth, loop in enumerate(loops[:of]):
        if loop.extent > 1:
            terms[loop.var] = trips(loops[depth + 1 :])
    return Affine(terms)


def slot(loops: Sequence[For], slots: int) -> Expr:
    """Which of `slots` copies the current iteration of a nest uses: turn mod slots."""
    whole = turn(loops)
    rest = {var: weight % slots for var, weight in whole.terms.items() if weight % slots}
    extents = {loop.var: loop.extent for loop in loops}
    if not rest or Affine(rest).bounds(extents)[1] < slots:
        return Affine(rest).expr()
    return FloorMod(Affine(rest).expr(), Const(slots, INDEX))


def homes(stmt: Stmt, path: Loops = ()) -> Iterator[tuple[Alloc, Loops]]:
    """Every allocation with the loops around it."""
    match stmt:
        case For():
            yield from homes(stmt.body, (*path, stmt))
        case Seq(stmts):
            for each in stmts:
                yield from homes(each, path)
        case If(_, then, otherwise):
            yield from homes(then, path)
            if otherwise is not None:
                yield from homes(otherwise, path)
        case Alloc():
            yield stmt, path
            yield from homes(stmt.body, path)
