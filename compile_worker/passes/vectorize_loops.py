"""Innermost loops of a CPU kernel become vectors of LANES lanes, or of more where all are bytes.

    for w in 0:56: y[w] = f(x[w])    ->    for w_c in 0:3: vectorized w_v in 0:16: y[w_c*16 + w_v]=…
                                           vectorized w_r in 0:8: y[w_r + 48] = …

A loop is a vector's if its iterations store to different elements and read nothing that another one
stores. A mark from the schedule on any loop of a nest leaves the whole nest as it is, but for a
vectorized loop for which there is no code: that runs one by one. What an intrinsic does stays, too.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import Final

from tilefarm.target import Target

from compile_worker.ir.affine import linear
from compile_worker.ir.annotations import INTRINSIC
from compile_worker.ir.expr import INDEX, Binary, Buffer, Call, Cast, Const, Expr, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.simplify import simplify
from compile_worker.ir.stmt import For, LoopKind, Seq, Stmt, Store, sequence
from compile_worker.ir.visit import find, mentioned, substitute
from compile_worker.isa import SCALAR, Isa, isa_of
from compile_worker.passes.byte_tables import index_of_entry
from compile_worker.passes.dot_products import dot_by
from compile_worker.passes.matrix_products import matrix_product_by
from compile_worker.passes.nests import descend, of_kind, statements

LANES: Final = 16
"""Of one vector: the lanes of a blocked tensor, a cache line of int32."""

_WIDEST: Final = 64
"""Lanes that a schedule may ask for, a longer loop is cut; and bytes of a cache line."""

_LEAST: Final = 4
"""Fewer lanes than this are not worth a vector."""


def vectorize_loops(func: Func, target: Target) -> Func:
    """Choose the loops of a CPU kernel that vectors run; others become plain loops."""
    body = simplify(_chosen(func.body, isa_of(target.host), may=True))
    return Func(func.name, func.params, body, func.attrs)


def marked_vectors(func: Func) -> Func:
    """Only loops that the schedule asks vectors for, where every processor gives the same bits."""
    if not any(map(_is_vectorized, of_kind(func.body, For))):
        return func
    body = simplify(_chosen(func.body, SCALAR, may=False))
    return Func(func.name, func.params, body, func.attrs)


def _is_vectorized(loop: For) -> bool:
    return loop.kind is LoopKind.VECTORIZED


def _chosen(stmt: Stmt, isa: Isa, *, may: bool) -> Stmt:
    """`may`: no loop around has a kind that the schedule chose."""
    if not isinstance(stmt, For):
        return descend(stmt, lambda each: _chosen(each, isa, may=may))
    if INTRINSIC.is_on(stmt):
        return stmt
    if _is_vectorized(stmt):
        if not has_vector_code(stmt) or not _exact(stmt, isa):
            return _of_kind(stmt, LoopKind.SERIAL)
        return _cut(stmt) if stmt.extent > _WIDEST else stmt
    if may and matrix_product_by(isa, stmt) is not None:
        return _of_kind(stmt, LoopKind.VECTORIZED)
    if may and (turned := _with_products_inside(stmt, isa)) is not None:
        return turned
    inner = [loop for loop in of_kind(stmt.body, For) if loop.extent > 1]
    if inner or not may or stmt.extent < _LEAST:
        body = _chosen(stmt.body, isa, may=may)
        return For(stmt.var, stmt.extent, body, stmt.kind, stmt.marks)
    if stmt.kind is not LoopKind.SERIAL or not has_vector_code(stmt) or not _exact(stmt, isa):
        return stmt
    return _cut(stmt, _WIDEST if stmt.extent >= _WIDEST and _is_of_bytes(stmt, isa) else LANES)


def _is_of_bytes(loop: For, isa: Isa) -> bool:
    """Whether iterations compute nothing but bytes, of neighbours or by tables."""
    loads = list(find(loop, Load))
    types = [each.buffer.dtype for each in of_kind(loop, Store)]
    types += [each.dtype for kind in (Load, Cast) for each in find(loop, kind)]
    return all(dtype is INDEX or dtype.nbytes == 1 for dtype in types) and all(
        _step(each, loop.var) in (0, 1) or index_of_entry(isa, each) is not None for each in loads
    )


def _step(load: Load, var: Var) -> int | None:
    """How far the elements of two iterations are apart, if that is known."""
    terms, _ = linear(load.index[0])
    step = terms.pop(var, 0)
    return None if any(var in mentioned(term) for term in terms) else step


def _with_products_inside(loop: For, isa: Isa) -> For | None:
    """For i: for o: a dot product  ->  vectorized o: for i: .., if there is an instruction."""
    lanes = loop.body
    if not isinstance(lanes, For) or not (_plain(loop) and _plain(lanes)):
        return None
    products = For(loop.var, loop.extent, lanes.body)
    if dot_by(isa, products, lanes.var, lanes.extent) is None:
        return None
    return For(lanes.var, lanes.extent, products, LoopKind.VECTORIZED)


def _plain(loop: For) -> bool:
    return loop.kind is LoopKind.SERIAL and not loop.marks


def has_vector_code(loop: For) -> bool:
    """Whether the iterations are independent, and made of what vectors can do."""
    known = (For, Seq, Store)
    if not all(isinstance(each, known) for each in statements(loop)):
        return False
    stores: dict[Buffer, set[Expr]] = {}
    for store in of_kind(loop, Store):
        stores.setdefault(store.buffer, set()).add(store.index[0])
    loads: dict[Buffer, set[Expr]] = {}
    for load in find(loop, Load):
        loads.setdefault(load.buffer, set()).add(load.index[0])
    return all(
        _apart(places, loop)
        and (buffer not in loads or (len(places) == 1 and loads[buffer] == places))
        for buffer, places in stores.items()
    )


def _apart(places: Collection[Expr], loop: For) -> bool:
    """Whether no two iterations store to one element.

    Places are between two steps of the loop, or so far apart that it comes from none to another.
    """
    forms = [linear(at) for at in places]
    steps = {terms.pop(loop.var, 0) for terms, _ in forms}
    first, _ = forms[0]
    if (
        any(terms != first for terms, _ in forms)
        or any(loop.var in mentioned(term) for term in first)
        or len(steps) > 1
    ):
        return False
    step, constants = abs(steps.pop()), sorted(constant for _, constant in forms)
    far = step * loop.extent
    return step > 0 and (
        constants[-1] - constants[0] < step
        or all(after - before >= far for before, after in pairwise(constants))
    )


def _exact(stmt: Stmt, isa: Isa) -> bool:
    """Whether vectors give the same bits: not everywhere for floats."""
    return isa.exact_floats or not any(
        each.dtype.is_float for kind in (Binary, Call) for each in find(stmt, kind)
    )


def _cut(loop: For, lanes: int = LANES) -> Stmt:
    """The loop in vectors of so many lanes, and what is left in vectors of at most LANES."""
    if loop.extent <= lanes:
        return _of_kind(loop, LoopKind.VECTORIZED)
    whole, rest = divmod(loop.extent, lanes)
    name = loop.var.name
    chunk, lane, last = Var(f"{name}_c"), Var(f"{name}_v"), Var(f"{name}_r")
    inner = For(lane, lanes, _at(loop, chunk * lanes + lane), LoopKind.VECTORIZED)
    parts: list[Stmt] = [For(chunk, whole, inner, LoopKind.SERIAL, loop.marks)]
    if rest:
        end = For(last, rest, _at(loop, last + Const(whole * lanes, INDEX)))
        parts.append(end if rest < _LEAST else _cut(end))
    return sequence(parts)


def _at(loop: For, value: Expr) -> Stmt:
    renamed = {each.var: Var(f"{each.var.name}_v") for each in find(loop.body, For)}
    return substitute(loop.body, {loop.var: value, **renamed})


def _of_kind(loop: For, kind: LoopKind) -> For:
    return For(loop.var, loop.extent, loop.body, kind, loop.marks)
