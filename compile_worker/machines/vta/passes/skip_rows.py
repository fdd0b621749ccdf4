"""Strided layers load only the rows they read.

    alloc x[13, 13]                                alloc x[7, 13]
    for r in 0:13: x[r, ...] = data[r + 26*t]  ->  for r in 0:7: x[r, ...] = data[2*r + 26*t]
    for h in 0:7: ... x[2*h, ...]                  for h in 0:7: ... x[h, ...]

A DMA's rows may be any distance apart, so half the rows cost half the time, padding included.
Columns stay: a DMA whose rows are single columns would have to be repeated for every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Final

from tilefarm.target import Target

from compile_worker.ir.affine import Affine, as_affine
from compile_worker.ir.expr import INDEX, Buffer, Const, Expr, Load, Mul, Select, Var
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Block, For, Store
from compile_worker.ir.visit import rewrite, substitute
from compile_worker.passes.nests import LANE_AXES, Access, of_kind, uses

_COLUMN_AND_LANES: Final = 1 + LANE_AXES


@dataclass(frozen=True, slots=True)
class _Skip:
    """Rows of one dimension that are used: every `step`-th, loaded by the loop over `var`."""

    buffer: Buffer
    dim: int
    var: Var
    step: int

    @property
    def smaller(self) -> Buffer:
        shape = list(self.buffer.shape)
        shape[self.dim] = (shape[self.dim] - 1) // self.step + 1
        return Buffer(self.buffer.name, tuple(shape), self.buffer.dtype, self.buffer.scope)


def skip_rows(func: Func, target: Target) -> Func:
    """Leave out rows of operands that nothing reads."""
    del target
    allocs = [a for a in of_kind(func.body, Alloc) if a.buffer.scope == "inp"]
    if not allocs:
        return func
    accesses = uses(func.body).of
    for alloc in allocs:
        skip = _found(alloc.buffer, accesses.get(alloc.buffer, []))
        if skip is not None:
            func = _skipped(func, skip)
    return func


def _found(buffer: Buffer, accesses: Sequence[Access]) -> _Skip | None:
    writes = [a for a in accesses if a.writes]
    if len(writes) != 1 or not _copies(writes[0].block):
        return None
    for dim in range(len(buffer.shape) - _COLUMN_AND_LANES):
        var = writes[0].index[dim]
        step = _stride([_moving(a, dim) for a in accesses if not a.writes])
        if step > 1 and isinstance(var, Var) and _loop(writes[0], var) > 1:
            return _Skip(buffer, dim, var, step)
    return None


def _copies(block: Block | None) -> bool:
    """Whether a block copies, with padding or without."""
    if block is None or not isinstance(block.body, Store):
        return False
    value = block.body.value
    return isinstance(value.then if isinstance(value, Select) else value, Load)


def _stride(reads: Sequence[Affine | None]) -> int:
    """What all indices are multiples of; 0 or 1 if there is nothing to skip."""
    step = 0
    for read in reads:
        if read is None:
            return 1
        step = gcd(step, read.constant, *read.terms.values())
    return step


def _moving(access: Access, dim: int) -> Affine | None:
    """One index of an access without the variables that are always 0."""
    at = as_affine(access.index[dim])
    return at and at.without(loop.var for loop in access.path if loop.extent == 1)


def _loop(access: Access, var: Var) -> int:
    """Extent of the loop over a variable; 0 if no loop around the access has it."""
    return next((loop.extent for loop in access.path if loop.var is var), 0)


def _skipped(func: Func, skip: _Skip) -> Func:
    step = Const(skip.step, INDEX)

    def stretch(node: Node) -> Node | None:
        if isinstance(node, For) and node.var is skip.var:
            body = substitute(node.body, {node.var: Mul(node.var, step)})
            extent = (node.extent - 1) // skip.step + 1
            return For(node.var, extent, body, node.kind, node.marks)
        return None

    def divide(node: Node) -> Node | None:
        match node:
            case Load(buffer, index) if buffer is skip.buffer:
                return Load(skip.smaller, _divided(index, skip))
            case Store(buffer, index, value) if buffer is skip.buffer:
                return Store(skip.smaller, _divided(index, skip), value)
            case Alloc(buffer, body, marks) if buffer is skip.buffer:
                return Alloc(skip.smaller, body, marks)
            case _:
                return None

    body = rewrite(rewrite(func.body, stretch), divide)
    return Func(func.name, func.params, body, func.attrs)


def _divided(index: tuple[Expr, ...], skip: _Skip) -> tuple[Expr, ...]:
    at = as_affine(index[skip.dim])
    assert at is not None
    terms = {v: c // skip.step for v, c in at.terms.items() if c % skip.step == 0}
    fewer = Affine(terms, at.constant // skip.step).expr()
    return (*index[: skip.dim], fewer, *index[skip.dim + 1 :])
