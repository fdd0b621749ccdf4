"""Which iterations of a loop need one another: none where each touches elements of its own only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from compile_worker.ir.affine import as_affine
from compile_worker.ir.expr import Buffer, Expr, Load, Var
from compile_worker.ir.nests import wrap
from compile_worker.ir.stmt import Alloc, For, Stmt, Store
from compile_worker.ir.visit import find, mentioned


def independent(var: Var, stmt: Stmt) -> bool:
    """Whether the iterations of a loop around `stmt` touch elements of their own only."""
    private = {alloc.buffer for alloc in find(stmt, Alloc)}
    shared = {store.buffer for store in find(stmt, Store)} - private
    return all(_own_slice(var, list(_indices(stmt, buffer))) for buffer in shared)


def may_be_outermost(loop: For, loops: Sequence[For], held: Stmt) -> bool:
    """Whether one of the loops around `held` may go around all of them, in any order.

    So it is where iterations touch elements of their own only, with all that the others do.
    """
    return independent(loop.var, wrap([each for each in loops if each is not loop], held))


def distributable(var: Var, first: Stmt, second: Stmt, own: Collection[Buffer]) -> bool:
    """Whether all iterations of `first` may be done before all of `second`, in a loop over `var`.

    So it is where what one stores and the other one touches is an element of the same iteration's.

    Args:
        own: buffers that each iteration has for itself.
    """
    stored = {store.buffer for stmt in (first, second) for store in find(stmt, Store)}
    shared = (stored & mentioned(first) & mentioned(second)) - {*own}
    return all(
        _own_slice(var, [*_indices(first, buffer), *_indices(second, buffer)])
        for buffer in shared
        if isinstance(buffer, Buffer)
    )


def _indices(stmt: Stmt, buffer: Buffer) -> Iterator[tuple[Expr, ...]]:
    places: list[Store | Load] = [*find(stmt, Store), *find(stmt, Load)]
    return (place.index for place in places if place.buffer is buffer)


def _own_slice(var: Var, indices: Sequence[tuple[Expr, ...]]) -> bool:
    """Whether all accesses have one axis at which they depend on `var` alone, all alike."""
    for axis in zip(*indices, strict=True):
        form = as_affine(axis[0])
        if form is not None and form.terms.keys() == {var} and all(at is axis[0] for at in axis):
            return True
    return False
