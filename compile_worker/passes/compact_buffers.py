"""Buffers shrink to what is alive inside the loops around all their accesses.

    alloc t[64]                                for i:
    for i: for j: t[i*8 + j] = ...               alloc t[8]
           for k: ... t[i*8 + k] ...         ->  for j: t[j] = ...   for k: ... t[k] ...

The part of an index that the common loops make up is the same in all accesses and goes; the others'
smallest value becomes 0. A dimension whose indices are not linear stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tilefarm.target import Target

from compile_worker.ir.affine import Affine, as_affine
from compile_worker.ir.expr import Buffer, Expr, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, For, Seq, Stmt, Store, sequence
from compile_worker.ir.visit import rewrite
from compile_worker.passes.nests import Access, common_loops, of_kind, uses

_CHANGED: Final = frozenset({Load, Store, Alloc, Seq, For})


@dataclass(frozen=True, slots=True)
class _Plan:
    """The smaller buffer, the base that its indices lose by dimension, and the loop it lives in."""

    buffer: Buffer
    bases: tuple[Affine | None, ...]
    home: Var | None


def compact_buffers(func: Func, target: Target) -> Func:
    """Shrink every allocated buffer and allocate it where it is alive."""
    del target
    allocs = list(of_kind(func.body, Alloc))
    accesses = uses(func.body).of
    plans = {a.buffer: _plan(a.buffer, accesses[a.buffer]) for a in allocs if a.buffer in accesses}
    homes: dict[Var | None, list[Alloc]] = {}
    for alloc in allocs:
        if alloc.buffer in plans:
            homes.setdefault(plans[alloc.buffer].home, []).append(alloc)

    def allocate(body: Stmt, home: Var | None) -> Stmt:
        for alloc in reversed(homes.get(home, ())):
            body = Alloc(plans[alloc.buffer].buffer, body, alloc.marks)
        return body

    def rule(node: Node) -> Node | None:
        if type(node) not in _CHANGED:
            return None
        match node:
            case Load(buffer, index) if buffer in plans:
                plan = plans[buffer]
                return Load(plan.buffer, _relative(index, plan.bases))
            case Store(buffer, index, value) if buffer in plans:
                plan = plans[buffer]
                return Store(plan.buffer, _relative(index, plan.bases), value)
            case Alloc(body=body):
                return body
            case Seq(stmts):
                return sequence(stmts)
            case For(var, extent, body, kind, marks) if var in homes:
                return For(var, extent, allocate(body, var), kind, marks)
            case _:
                return None

    return Func(func.name, func.params, allocate(rewrite(func.body, rule), None), func.attrs)


def _plan(buffer: Buffer, accesses: Sequence[Access]) -> _Plan:
    common = common_loops([a.path for a in accesses])
    around = {loop.var for loop in common}
    extents = {loop.var: loop.extent for a in accesses for loop in a.path}
    dims = [
        _dimension([a.index[d] for a in accesses], size, around, extents)
        for d, size in enumerate(buffer.shape)
    ]
    smaller = Buffer(buffer.name, tuple(size for size, _ in dims), buffer.dtype, buffer.scope)
    return _Plan(smaller, tuple(base for _, base in dims), common[-1].var if common else None)


def _dimension(
    indices: Sequence[Expr], size: int, around: set[Var], extents: Mapping[Var, int]
) -> tuple[int, Affine | None]:
    """The extent that one dimension needs, and the base that its indices lose."""
    parts = [as_affine(index) for index in dict.fromkeys(indices)]
    first = parts[0]
    if first is None:
        return size, None
    outer = first.over(around)
    low, high = size, 0
    for part in parts:
        if part is None or part.over(around) != outer:
            return size, None
        least, most = part.without(around).bounds(extents)
        low, high = min(low, least), max(high, most)
    if high - low + 1 > size:
        return size, None
    return high - low + 1, Affine(outer.terms, low)


def _relative(index: tuple[Expr, ...], bases: Sequence[Affine | None]) -> tuple[Expr, ...]:
    return tuple(
        at if base is None or (part := as_affine(at)) is None else (part - base).expr()
        for at, base in zip(index, bases, strict=True)
    )
