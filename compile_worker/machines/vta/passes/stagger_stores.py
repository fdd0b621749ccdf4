"""A tile's last operations and its store take turns, part by part.

    alu add acc[0:64]; alu max acc[0:64]          for part in 0:4:
    store acc[0:64]                         ->      alu add acc[16*part : +16]; alu max ...
                                                    store acc[16*part : +16]

While one part is stored, the ALU works on the next, so that the next tile, if it uses the same
accumulators, waits for the last part's store only, and so does the end of the kernel. That costs
instructions, and micro-ops for every part: their number is the one that is expected to save most
cycles, which may be one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tilefarm.target import Target

from compile_worker.ir.annotations import COPIES
from compile_worker.ir.expr import Const, Var, index
from compile_worker.ir.func import Func
from compile_worker.ir.nests import Loops
from compile_worker.ir.stmt import Dma, For, MicroKernel, Seq, Stmt, sequence
from compile_worker.ir.visit import substitute
from compile_worker.machines.vta.costs import Costs, costs_of
from compile_worker.machines.vta.limits import uops_fit
from compile_worker.machines.vta.passes.parts import Cut, part_of
from compile_worker.machines.vta.passes.slots import recorded_keys
from compile_worker.machines.vta.tile_stores import (
    FINER,
    EqualParts,
    LastStage,
    TileEnd,
    equal_parts,
)
from compile_worker.passes.nests import descend, of_kind
from compile_worker.passes.turns import homes, trips


@dataclass(frozen=True, slots=True)
class _Tile:
    """How often accumulators of one allocation are filled, in how many copies, and at what cost."""

    target: Target
    costs: Costs
    extents: Mapping[Var, int]
    uops: int
    turns: int
    copies: int


@dataclass(frozen=True, slots=True)
class _Tail:
    """The end of a tile: what comes before, the last ALU operations, and the store."""

    before: tuple[Stmt, ...]
    operations: tuple[Stmt, ...]
    store: Stmt

    @property
    def kernels(self) -> tuple[MicroKernel, ...]:
        return tuple(k for each in self.operations for k in of_kind(each, MicroKernel))

    @property
    def blocks(self) -> int:
        """Instructions of an operation that is one for each block of channels."""
        return max((each.extent for each in self.operations if isinstance(each, For)), default=1)

    @property
    def elements(self) -> int:
        """Accumulators in the tile."""
        first = self.operations[0]
        repeats = first.extent if isinstance(first, For) else 1
        kernel = self.kernels[0]
        return repeats * len(kernel.uops) * prod(loop.extent for loop in kernel.loops)

    @property
    def rows(self) -> int:
        """Rows of the store; those that only the run knows count as one."""
        repeats = self.store.extent if isinstance(self.store, For) else 1
        store = self.store.body if isinstance(self.store, For) else self.store
        if isinstance(store, Dma) and isinstance(store.rows, Const):
            return repeats * int(store.rows.value)
        return repeats


def stagger_stores(func: Func, target: Target) -> Func:
    """Cut the end of every tile into as many parts as pays."""
    kernels = list(of_kind(func.body, MicroKernel))
    if not kernels:
        return func
    extents = {loop.var: loop.extent for loop in of_kind(func.body, For)}
    uops = sum(len(k.uops) * recorded_keys(k, extents) for k in kernels)
    taken = costs_of(target)
    where = {
        alloc.buffer: _Tile(target, taken, extents, uops, trips(path), COPIES.of(alloc))
        for alloc, path in homes(func.body)
        if alloc.buffer.scope == "acc"
    }

    def visit(stmt: Stmt, inside: Loops) -> Stmt:
        match stmt:
            case For(var, extent, body, kind, marks):
                return For(var, extent, visit(body, (*inside, stmt)), kind, marks)
            case Seq(stmts) if (tail := _tail(stmts)) is not None:
                tile = where[tail.kernels[0].dst.buffer]
                if trips(inside) > tile.turns:  # parts of a tile already
                    return stmt
                cut = _best(tail, tile)
                return sequence((*tail.before, *cut)) if cut else stmt
            case _:
                return descend(stmt, lambda each: visit(each, inside))

    return Func(func.name, func.params, visit(func.body, ()), func.attrs)


def _tail(stmts: Sequence[Stmt]) -> _Tail | None:
    """The statements of a tile's end; None if they are something else."""
    end = len(stmts) - 1
    first = end
    while first and _is_alu(stmts[first - 1]):
        first -= 1
    tail = _Tail(tuple(stmts[:first]), tuple(stmts[first:end]), stmts[end])
    store = tail.store.body if isinstance(tail.store, For) else tail.store
    if not tail.operations or not isinstance(store, Dma) or store.direction != "store":
        return None
    if any(kernel.dst.buffer is not store.sram.buffer for kernel in tail.kernels):
        return None
    return tail


def _is_alu(stmt: Stmt) -> bool:
    """Whether a statement is one ALU instruction, or one for each block of channels."""
    inner = stmt.body if isinstance(stmt, For) else stmt
    return isinstance(inner, MicroKernel) and inner.engine == "alu"


def _best(tail: _Tail, tile: _Tile) -> list[Stmt]:
    """The tail in the parts that are expected to take least; nothing if it is best left whole."""
    best: list[Stmt] = []
    end = _end(tail, tile)
    least = end.cycles(EqualParts(1))
    for parts in _choices(tail):
        cycles = end.cycles(parts.equal)
        if cycles < least and _fits(end, tile, parts) and (cut := _cut(tail, parts)):
            best, least = cut, cycles
    return best


def _end(tail: _Tail, tile: _Tile) -> TileEnd:
    operations = tuple(
        LastStage(
            instructions=operation.extent if isinstance(operation, For) else 1,
            keys=recorded_keys(kernel, tile.extents),
            element_cycles=tile.costs.alu(1 if kernel.src is None else 2),
        )
        for operation, kernel in zip(tail.operations, tail.kernels, strict=True)
    )
    return TileEnd(
        costs=tile.costs,
        operations=operations,
        elements=tail.elements,
        rows=tail.rows,
        element_cycles=tile.costs.store.element,
        turns=tile.turns,
        copies=tile.copies,
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """Equal parts, as loops."""

    levels: tuple[Cut, ...]
    equal: EqualParts


def _choices(tail: _Tail) -> Iterator[_Parts]:
    """Cuts into blocks of channels, several or one, and further into parts of blocks."""
    name, elements, blocks = tail.kernels[0].dst.buffer.name, tail.elements, tail.blocks
    part, block = Var(f"{name}_part"), Var(f"{name}_block")
    for equal in equal_parts(elements):
        count, size = equal.count, elements // equal.count
        if count == 1:
            continue
        yield _Parts((Cut(part, count, size),), equal)
        is_last = equal.finer == max(finer for finer in FINER if size % finer == 0)
        if is_last and count % blocks == 0 and count > blocks > 1:
            whole = Cut(block, blocks, elements // blocks)
            yield _Parts((whole, Cut(part, count // blocks, size)), EqualParts(count))


def _resident(operations: Sequence[LastStage], parts: EqualParts) -> int:
    """Micro-op kernels that the operations load, one for every part and slot."""
    total = 0
    for operation in operations:
        before = operation.instructions
        last = max(before // parts.count, 1)  # instructions of the last part
        count = max(before, parts.count) - last + max(last, parts.finer)
        total += operation.keys * count // before
    return total


def _fits(end: TileEnd, tile: _Tile, parts: _Parts) -> bool:
    operations = end.operations
    more = _resident(operations, parts.equal) - _resident(operations, EqualParts(1))
    return uops_fit(tile.target, tile.uops + more) is None


def _cut(tail: _Tail, parts: _Parts) -> list[Stmt]:
    """The tail in so many parts; nothing if it cannot be cut so."""
    body = _part(tail, parts.levels)
    finer = parts.equal.finer
    if not body or finer == 1:
        return [_loops(parts.levels, sequence(body))] if body else []
    (level,) = parts.levels
    last = [substitute(stmt, {level.var: index(level.count - 1)}) for stmt in body]
    inner = Cut(Var(f"{level.var.name}_end"), finer, level.size // finer)
    end = _part(_Tail((), tuple(last[:-1]), last[-1]), (inner,))
    if not end:
        return []
    first = _loops((replace(level, count=level.count - 1),), sequence(body))
    return [first, _loops((inner,), sequence(end))]


def _part(tail: _Tail, levels: Sequence[Cut]) -> list[Stmt]:
    cut = [part_of(stmt, levels) for stmt in (*tail.operations, tail.store)]
    whole = [stmt for stmt in cut if stmt is not None]
    return whole if len(whole) == len(cut) else []


def _loops(levels: Sequence[Cut], body: Stmt) -> Stmt:
    for level in reversed(levels):
        body = For(level.var, level.count, body)
    return body
