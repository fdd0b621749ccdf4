"""A tile's last operations and its store take turns, part by part.

    alu add acc[0:64]; alu max acc[0:64]          for part in 0:4:
    store acc[0:64]                         ->      alu add acc[16*part : +16]; alu max ...
                                                    store acc[16*part : +16]

While one part is stored, the ALU works on the next, so that the next tile, if it uses the same
accumulators, waits for the last part's store only. That costs instructions, and micro-ops for every
part: their number is the one that is expected to save most cycles, which may be one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from tilefarm.target import Target

from compile_worker.ir.expr import Add, Const, Expr, Mul, Var
from compile_worker.ir.expr import index as constant
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import (
    Alloc,
    Dma,
    For,
    HardwareLoop,
    MicroKernel,
    Ref,
    Seq,
    Stmt,
    sequence,
)
from compile_worker.ir.visit import substitute
from compile_worker.limits import slot_keys_fit, uops_fit
from compile_worker.passes.nests import Path, descend, of_kind
from compile_worker.passes.slots import base_of, combinations, digits_of
from compile_worker.passes.turns import homes, trips

INSTRUCTION_CYCLES: Final = 7
"""What one more ALU instruction takes beyond its micro-ops."""

UOP_LOAD_CYCLES: Final = 50
"""What it takes to load the micro-ops of one more slot key, once a function."""

STORE_CYCLES: Final = 3
"""Cycles of a store for every element."""


MOST_PARTS: Final = 16


@dataclass(frozen=True, slots=True)
class _Cost:
    """What the expected cycles depend on, apart from the tile itself."""

    target: Target
    extents: Mapping[Var, int]


@dataclass(frozen=True, slots=True)
class _Tail:
    """The end of a tile: what comes before, the last ALU operations, and the store."""

    before: tuple[Stmt, ...]
    operations: tuple[MicroKernel, ...]
    store: Stmt

    @property
    def elements(self) -> int:
        """Accumulators in the tile."""
        first = self.operations[0]
        return len(first.uops) * prod(loop.extent for loop in first.loops)


def stagger_stores(func: Func, target: Target) -> Func:
    """Cut the end of every tile into as many parts as pays."""
    kernels = list(of_kind(func.body, MicroKernel))
    if not kernels:
        return func
    cost = _Cost(target, {loop.var: loop.extent for loop in of_kind(func.body, For)})
    uops = sum(len(k.uops) * combinations(digits_of(k, cost.extents)) for k in kernels)
    where = {alloc.buffer: (alloc, path) for alloc, path in homes(func.body)}

    def visit(stmt: Stmt) -> Stmt:
        match stmt:
            case For(var, extent, body, kind, marks):
                return For(var, extent, visit(body), kind, marks)
            case Seq(stmts) if (tail := _tail(stmts)) is not None:
                alloc, path = where[tail.operations[0].dst.buffer]
                parts = _best(tail, alloc, path, uops, cost)
                return sequence((*tail.before, *_cut(tail, parts))) if parts > 1 else stmt
            case _:
                return descend(stmt, visit)

    return Func(func.name, func.params, visit(func.body), func.attrs)


def _tail(stmts: Sequence[Stmt]) -> _Tail | None:
    """The statements of a tile's end; None if they are something else."""
    end = len(stmts) - 1
    first = end
    while first and _is_alu(stmts[first - 1]):
        first -= 1
    operations = tuple(stmt for stmt in stmts[first:end] if isinstance(stmt, MicroKernel))
    whole = stmts[end]
    store = whole.body if isinstance(whole, For) else whole
    if not operations or not isinstance(store, Dma) or store.direction != "store":
        return None
    if any(kernel.dst.buffer is not store.sram.buffer for kernel in operations):
        return None
    return _Tail(tuple(stmts[:first]), operations, whole)


def _is_alu(stmt: Stmt) -> bool:
    return isinstance(stmt, MicroKernel) and stmt.engine == "alu"


def _best(tail: _Tail, alloc: Alloc, path: Path, uops: int, cost: _Cost) -> int:
    """The number of parts that is expected to save most cycles."""
    if int(dict(alloc.marks)["copies"]) > 1:  # the next tile does not wait for this one's store
        return 1
    tiles = trips(path)
    keys = [combinations(digits_of(kernel, cost.extents)) for kernel in tail.operations]
    more = sum(len(k.uops) * n for k, n in zip(tail.operations, keys, strict=True))
    each = len(tail.operations) * tiles * INSTRUCTION_CYCLES + sum(keys) * UOP_LOAD_CYCLES
    best, most = 1, 0.0
    for parts in range(2, MOST_PARTS + 1):
        gain = tiles * STORE_CYCLES * tail.elements * (1 - 1 / parts) - (parts - 1) * each
        if (
            gain > most
            and slot_keys_fit(parts * max(keys)) is None
            and uops_fit(cost.target, uops + (parts - 1) * more) is None
            and _cut(tail, parts)
        ):
            best, most = parts, gain
    return best


def _cut(tail: _Tail, parts: int) -> list[Stmt]:
    """The tail in so many parts; nothing if it cannot be cut so."""
    size = tail.elements // parts
    part = Var(f"{tail.operations[0].dst.buffer.name}_part")
    cut = [_part_of_kernel(kernel, part, parts, size) for kernel in tail.operations]
    cut.append(_part_of_store(tail.store, part, parts, size))
    whole = [stmt for stmt in cut if stmt is not None]
    if tail.elements % parts or len(whole) < len(cut):
        return []
    return [For(part, parts, sequence(whole))]


def _part_of_kernel(kernel: MicroKernel, part: Var, parts: int, size: int) -> Stmt | None:
    """The operation on `size` elements in a row; None if its outermost loop does not allow it."""
    if not kernel.loops:
        return None
    outer, *inner = kernel.loops
    extent = outer.extent // parts
    reach = max(uop.dst for uop in kernel.uops) + sum((n.extent - 1) * n.dst for n in inner)
    if outer.extent % parts or extent * outer.dst != size or reach >= outer.dst:
        return None
    first = [HardwareLoop(extent, outer.dst, outer.src, outer.wgt)] if extent > 1 else []
    return MicroKernel(
        kernel.engine,
        kernel.opcode,
        _moved(kernel.dst, part, size),
        None if kernel.src is None else _moved(kernel.src, part, extent * outer.src),
        None,
        (*first, *inner),
        kernel.uops,
        kernel.imm,
    )


def _part_of_store(store: Stmt, part: Var, parts: int, size: int) -> Stmt | None:
    """The store of `size` elements in a row: fewer trips of its loop, or fewer rows or columns."""
    match store:
        case For(var, extent, Dma() as dma):
            trip = extent // parts
            if extent % parts or dict(base_of(dma.sram).terms).get(var, 0) * trip != size:
                return None
            place = _plus(var if trip > 1 else constant(0), part, trip)
            inner = substitute(dma, {var: place})
            return For(var, trip, inner) if trip > 1 else inner
        case Dma(rows=Const(rows), columns=Const(columns), stride=Const(stride)):
            if rows % parts == 0 and int(rows) // parts * int(columns) == size:
                count = int(rows) // parts
                return _shorter(store, part, size, count * int(stride), count, int(columns))
            if rows == 1 and columns == size * parts:
                return _shorter(store, part, size, size, 1, size)
    return None


def _shorter(dma: Dma, part: Var, sram: int, dram: int, rows: int, columns: int) -> Dma:
    """A store of fewer rows or columns that begins further on for every part."""
    return Dma(
        dma.direction,
        _moved(dma.sram, part, sram),
        _moved(dma.dram, part, dram),
        constant(rows),
        constant(columns),
        dma.stride,
        dma.pad_top,
        dma.pad_left,
        dma.pad_bottom,
        dma.pad_right,
    )


def _moved(ref: Ref, part: Var, step: int) -> Ref:
    return Ref(ref.buffer, _plus(ref.element, part, step)) if step else ref


def _plus(start: Expr, part: Var, step: int) -> Expr:
    further = part if step == 1 else Mul(part, constant(step))
    return further if start is constant(0) else Add(start, further)
