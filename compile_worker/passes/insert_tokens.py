"""Tokens between load, compute and store: who waits for whom, as deep as the buffers have slots.

    for k in 0:8:                               for k in 0:8:
      load inp (2 copies)                         if k >= 2: pop compute->load
      gemm acc += inp                    ->       load inp
    store acc                                     push load->compute;  pop load->compute
                                                  gemm acc += inp
                                                  if k < 6: push compute->load
                                                push compute->store; pop compute->store; store acc

Tokens are counts. One step is all that is loaded since the last GEMM; with n slots, step k
overwrites what step k-n used, so it waits for the token of that step: the first n steps need none,
and the last n leave none. A load that sits further out joins the step that it comes before. Tiles
of accumulators and the stores that read them take the same turns. Loads of accumulators run on the
compute module, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, TypeAlias

from tilefarm.target import Target

from compile_worker.ir.expr import And, Buffer, Expr, Le, Lt, Ne, Or, index
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import (
    Alloc,
    Dma,
    For,
    If,
    MicroKernel,
    Module,
    Pop,
    Push,
    Seq,
    Stmt,
    Synchronize,
    sequence,
)
from compile_worker.passes.elements import unsupported
from compile_worker.passes.nests import Path, descend, of_kind
from compile_worker.passes.turns import homes, trips, turn

STAGE: Final = "insert_tokens"

_OPERANDS: Final = frozenset(("inp", "wgt"))

_Homes: TypeAlias = Mapping[Buffer, tuple[int, Path]]
"""Copies of every allocated buffer, and the loops around its allocation."""


def insert_tokens(func: Func, target: Target) -> Func:
    """Add the tokens that the order of loads, GEMMs and stores needs, and the final wait."""
    del target
    if next(of_kind(func.body, Dma), None) is None:
        return func
    where: _Homes = {
        alloc.buffer: (int(dict(alloc.marks).get("copies", 1)), path)
        for alloc, path in homes(func.body)
    }
    body = _with_load_tokens(_with_store_tokens(func.body, where), where)
    return Func(func.name, func.params, sequence((body, Synchronize())), func.attrs)


@dataclass(frozen=True, slots=True)
class _Steps:
    """The loops around a step, the depths at which loads sit, and how many steps may be ahead."""

    loops: Path
    depths: tuple[int, ...]
    slots: int

    @property
    def count(self) -> int:
        return trips(self.loops)

    def wait(self, depth: int) -> list[Stmt]:
        """Before the loads at `depth`: unless further out a load began this step, take a token."""
        before = max((d for d in self.depths if d < depth), default=None)
        done = turn(self.loops, of=depth)
        if self.count <= self.slots or not done.terms:
            return []
        late: Expr = Le(index(self.slots), done.expr())
        if before is not None:
            moved = [loop.var for loop in self.loops[before:depth] if loop.extent > 1]
            if not moved:
                return []
            again: list[Expr] = [Ne(var, index(0)) for var in moved]
            late = And(late, reduce(Or, again))
        return [If(late, Pop(Module.COMPUTE, Module.LOAD))]

    def release(self) -> list[Stmt]:
        """After the GEMM of a step: a token for the step that will overwrite its operands."""
        return _before_the_last(self.loops, self.slots, Push(Module.COMPUTE, Module.LOAD))


def _with_load_tokens(body: Stmt, where: _Homes) -> Stmt:
    """Tokens between operand loads and the GEMM that uses them."""
    found = _steps(body, where)
    return body if found is None else _step_tokens(body, 0, found)


def _steps(body: Stmt, where: _Homes) -> _Steps | None:
    loops: list[For] = []
    depths: list[int] = []
    stmt = body
    while _accumulates(stmt):
        match stmt:
            case For():
                loops.append(stmt)
                stmt = stmt.body
            case Alloc():
                stmt = stmt.body
            case Seq(stmts):
                at = _only(stmts, _accumulates)
                if any(map(_fetches, stmts[at + 1 :])):
                    raise unsupported(STAGE, "an operand is loaded after the GEMM that uses it")
                if any(map(_fetches, stmts[:at])):
                    depths.append(len(loops))
                stmt = stmts[at]
            case _:
                break
    if not depths:
        return None
    slots = [n for buffer, (n, at) in where.items() if buffer.scope in _OPERANDS and trips(at) > 1]
    return _Steps(tuple(loops[: depths[-1]]), tuple(depths), min(slots, default=1))


def _step_tokens(stmt: Stmt, depth: int, steps: _Steps) -> Stmt:
    match stmt:
        case For(var, extent, body, kind, marks):
            return For(var, extent, _step_tokens(body, depth + 1, steps), kind, marks)
        case Seq(stmts):
            at = _only(stmts, _accumulates)
            new = [*_load_tokens(stmts[:at], depth, steps)]
            if depth == steps.depths[-1]:
                new += [Pop(Module.LOAD, Module.COMPUTE), stmts[at], *steps.release()]
            else:
                new.append(_step_tokens(stmts[at], depth, steps))
            return sequence((*new, *stmts[at + 1 :]))
        case _:
            return descend(stmt, lambda each: _step_tokens(each, depth, steps))


def _load_tokens(stmts: Sequence[Stmt], depth: int, steps: _Steps) -> Iterator[Stmt]:
    """The statements before a GEMM, with tokens before the first load and after the last."""
    fetching = [at for at, stmt in enumerate(stmts) if _fetches(stmt)]
    for at, stmt in enumerate(stmts):
        if fetching and at == fetching[0]:
            yield from steps.wait(depth)
        yield stmt
        if fetching and at == fetching[-1] and depth == steps.depths[-1]:
            yield Push(Module.LOAD, Module.COMPUTE)


def _with_store_tokens(body: Stmt, where: _Homes) -> Stmt:
    """Tokens between the last write of a tile of accumulators and the store that reads it."""
    stored = {dma.sram.buffer for dma in of_kind(body, Dma) if dma.direction == "store"}
    if len(stored) != 1:
        raise unsupported(STAGE, f"{len(stored)} buffers are stored, not one")
    (tile,) = stored
    slots, loops = where[tile]

    def visit(stmt: Stmt) -> Stmt:
        match stmt:
            case Alloc(buffer, inner, marks) if buffer is tile:
                return Alloc(buffer, _tile_tokens(inner, tile, loops, slots), marks)
            case For(var, extent, inner, kind, marks):
                return For(var, extent, visit(inner), kind, marks)
            case _:
                return descend(stmt, visit)

    return visit(body)


def _tile_tokens(stmt: Stmt, tile: Buffer, loops: Path, slots: int) -> Stmt:
    if isinstance(stmt, Alloc):
        return Alloc(stmt.buffer, _tile_tokens(stmt.body, tile, loops, slots), stmt.marks)
    stmts = stmt.stmts if isinstance(stmt, Seq) else (stmt,)
    first = next(at for at, each in enumerate(stmts) if _writes(each, tile))
    last = max(at for at, each in enumerate(stmts) if _stores(each))
    new: list[Stmt] = []
    for at, each in enumerate(stmts):
        if at == first and trips(loops) > slots:
            late = Le(index(slots), turn(loops).expr())
            new.append(If(late, Pop(Module.STORE, Module.COMPUTE)))
        new.append(_handed_over(each))
        if at == last:
            new += _before_the_last(loops, slots, Push(Module.STORE, Module.COMPUTE))
    return sequence(new)


def _handed_over(stmt: Stmt) -> Stmt:
    """Statements with the hand-over from compute to store before every store."""
    if not _stores(stmt):
        return stmt
    if next(of_kind(stmt, MicroKernel), None) is None:
        handed = (Push(Module.COMPUTE, Module.STORE), Pop(Module.COMPUTE, Module.STORE))
        return sequence((*handed, stmt))
    if isinstance(stmt, For):
        return For(stmt.var, stmt.extent, _handed_over(stmt.body), stmt.kind, stmt.marks)
    return descend(stmt, _handed_over)


def _before_the_last(loops: Path, slots: int, token: Push) -> list[Stmt]:
    """The token, except in the last iterations, after which nobody waits for it."""
    count = trips(loops)
    if count <= slots:
        return []
    return [If(Lt(turn(loops).expr(), index(count - slots)), token)]


def _only(stmts: Sequence[Stmt], holds: Callable[[Stmt], bool]) -> int:
    found = [at for at, stmt in enumerate(stmts) if holds(stmt)]
    if len(found) != 1:
        raise unsupported(STAGE, f"{len(found)} statements of one sequence hold a GEMM")
    return found[0]


def _accumulates(stmt: Stmt) -> bool:
    return any(k.engine == "gemm" and not k.reset for k in of_kind(stmt, MicroKernel))


def _fetches(stmt: Stmt) -> bool:
    """Whether operands of a GEMM are loaded."""
    return any(dma.sram.buffer.scope in _OPERANDS for dma in of_kind(stmt, Dma))


def _stores(stmt: Stmt) -> bool:
    return any(dma.direction == "store" for dma in of_kind(stmt, Dma))


def _writes(stmt: Stmt, tile: Buffer) -> bool:
    return any(kernel.dst.buffer is tile for kernel in of_kind(stmt, MicroKernel))
