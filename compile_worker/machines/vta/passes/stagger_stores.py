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
from math import ceil, prod
from typing import Final

from tilefarm.target import Target

from compile_worker.ir.annotations import COPIES
from compile_worker.ir.expr import Const, Var, index
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Dma, For, MicroKernel, Seq, Stmt, sequence
from compile_worker.ir.visit import substitute
from compile_worker.machines.vta.costs import Costs, costs_of
from compile_worker.machines.vta.limits import uops_fit
from compile_worker.machines.vta.passes.parts import Cut, part_of
from compile_worker.machines.vta.passes.slots import recorded_keys
from compile_worker.machines.vta.passes.turns import homes, trips
from compile_worker.passes.nests import Loops, descend, of_kind

KERNEL_UOPS: Final = 10
"""About so many micro-ops has a kernel that is loaded once more, for another slot key."""

MOST_PARTS: Final = 64
FINER: Final = (1, 2, 4)
"""Into how many parts the last one may be cut once more: only its store is waited for."""


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
    costs = _costs(tail, tile)
    least = _cycles(costs, tail, tile, _WHOLE)
    for parts in _choices(tail):
        cycles = _cycles(costs, tail, tile, parts)
        if cycles < least and _fits(costs, tile, parts) and (cut := _cut(tail, parts)):
            best, least = cut, cycles
    return best


@dataclass(frozen=True, slots=True)
class _Cost:
    """Of one ALU operation: instructions, micro-op kernels recorded for them, cycles an element."""

    instructions: int
    keys: int
    element_cycles: int


def _costs(tail: _Tail, tile: _Tile) -> list[_Cost]:
    return [
        _Cost(
            instructions=operation.extent if isinstance(operation, For) else 1,
            keys=recorded_keys(kernel, tile.extents),
            element_cycles=tile.costs.alu(1 if kernel.src is None else 2),
        )
        for operation, kernel in zip(tail.operations, tail.kernels, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Parts:
    """Equal parts, the last of which is cut once more into `finer` ones."""

    levels: tuple[Cut, ...]
    finer: int

    @property
    def count(self) -> int:
        return prod(level.count for level in self.levels)

    def sizes(self, elements: int) -> list[int]:
        """Accumulators of every part, in order."""
        each = elements // self.count
        return [each] * (self.count - 1) + [each // self.finer] * self.finer


_WHOLE: Final = _Parts((), 1)


def _choices(tail: _Tail) -> Iterator[_Parts]:
    """Cuts into blocks of channels, several or one, and further into parts of blocks."""
    name, elements = tail.kernels[0].dst.buffer.name, tail.elements
    part, block = Var(f"{name}_part"), Var(f"{name}_block")
    blocks = tail.blocks
    for count in range(2, MOST_PARTS + 1):
        if elements % count == 0:
            levels = (Cut(part, count, elements // count),)
            yield from (_Parts(levels, finer) for finer in FINER if levels[0].size % finer == 0)
            if count % blocks == 0 and count > blocks > 1:
                whole = Cut(block, blocks, elements // blocks)
                yield _Parts((whole, Cut(part, count // blocks, levels[0].size)), 1)


def _cycles(costs: Sequence[_Cost], tail: _Tail, tile: _Tile, parts: _Parts) -> float:
    """What the ends of all tiles take: the ALU, the stores somebody waits for, micro-op loads."""
    alu = store = 0.0
    elements, rows = tail.elements, tail.rows
    sizes = parts.sizes(elements)
    taken = {size: _alu_cycles(costs, elements, tile, size) for size in set(sizes)}
    for size in sizes:
        alu += taken[size]
        row_cycles = tile.costs.store.row * ceil(rows * size / elements)
        store_cycles = tile.costs.store.start + tile.costs.store.element * size + row_cycles
        store = max(store, alu) + store_cycles
    return tile.turns * store if tile.copies == 1 else tile.turns * alu + (store - alu)


def _alu_cycles(costs: Sequence[_Cost], elements: int, tile: _Tile, size: int) -> float:
    """One part's ALU instructions, one for each block of channels where they differ.

    Each loads its micro-ops for every slot key once, which is shared among all tiles.
    """
    total = 0.0
    uop_load = tile.costs.uop_load + KERNEL_UOPS * tile.costs.uop_quarters / 4
    for cost in costs:
        instructions = max(1, size * cost.instructions // elements)
        each = tile.costs.start + uop_load * (cost.keys / cost.instructions) / tile.turns
        total += each * instructions + size * cost.element_cycles
    return total


def _resident(costs: Sequence[_Cost], parts: _Parts) -> int:
    """Micro-op kernels that the operations load, one for every part and slot."""
    total = 0
    for cost in costs:
        before = cost.instructions
        last = max(before // parts.count, 1)  # instructions of the last part
        count = max(before, parts.count) - last + max(last, parts.finer)
        total += cost.keys * count // before
    return total


def _fits(costs: Sequence[_Cost], tile: _Tile, parts: _Parts) -> bool:
    more = _resident(costs, parts) - _resident(costs, _WHOLE)
    return uops_fit(tile.target, tile.uops + more) is None


def _cut(tail: _Tail, parts: _Parts) -> list[Stmt]:
    """The tail in so many parts; nothing if it cannot be cut so."""
    body = _part(tail, parts.levels)
    if not body or parts.finer == 1:
        return [_loops(parts.levels, sequence(body))] if body else []
    (level,) = parts.levels
    last = [substitute(stmt, {level.var: index(level.count - 1)}) for stmt in body]
    inner = Cut(Var(f"{level.var.name}_end"), parts.finer, level.size // parts.finer)
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
