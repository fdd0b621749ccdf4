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
and the last n leave none. A load that sits further out joins the step that it comes before, and
what multiplies behind a step's GEMM belongs to that step. Tiles of accumulators and the stores that
read them take the same turns. Loads of accumulators run on the compute module, in order.

Where several buffers are stored, they take the same turns: a tile is free when the last is stored.

Accumulators marked {hold=1} keep loads from getting ahead at the wrong moment: those that would
begin with the last operations of a tile begin after them, and the second step's after the first
reset. Micro-ops that are loaded meanwhile do not have to queue up behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final, TypeAlias

from tilefarm.target import Target

from compile_worker.ir.annotations import COPIES, HOLD
from compile_worker.ir.expr import Buffer, Le, index
from compile_worker.ir.func import Func
from compile_worker.ir.nests import Loops
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
from compile_worker.machines.vta.passes.elements import unsupported
from compile_worker.machines.vta.passes.steps import LoadSteps, before_the_last
from compile_worker.passes.nests import descend, of_kind
from compile_worker.passes.turns import homes, trips, turn

STAGE: Final = "insert_tokens"

_OPERANDS: Final = frozenset(("inp", "wgt"))

_Homes: TypeAlias = Mapping[Buffer, tuple[int, Loops]]
"""Copies of every allocated buffer, and the loops around its allocation."""


def insert_tokens(func: Func, target: Target) -> Func:
    """Add the tokens that the order of loads, GEMMs and stores needs, and the final wait."""
    del target
    if next(of_kind(func.body, Dma), None) is None:
        return func
    where: _Homes = {alloc.buffer: (COPIES.of(alloc), path) for alloc, path in homes(func.body)}
    held = next((a.buffer for a, _ in homes(func.body) if HOLD.of(a)), None)
    body = _with_load_tokens(_with_store_tokens(func.body, where), where, held)
    return Func(func.name, func.params, sequence((body, Synchronize())), func.attrs)


def _with_load_tokens(body: Stmt, where: _Homes, held: Buffer | None) -> Stmt:
    """Tokens between operand loads and the GEMM that uses them."""
    found = _steps(body, where)
    if found is None:
        return body
    if held is not None and len(where[held][1]) <= found.depths[-1]:
        found = replace(found, hold=len(where[held][1]))
    return _step_tokens(body, 0, found)


def _steps(body: Stmt, where: _Homes) -> LoadSteps | None:
    loops: list[For] = []
    depths: list[int] = []
    late: list[Stmt] = []
    behind: list[Stmt] = []
    stmt = body
    while _accumulates(stmt):
        match stmt:
            case For():
                loops.append(stmt)
                stmt = stmt.body
            case Alloc():
                stmt = stmt.body
            case Seq(stmts):
                at = _first(stmts, _accumulates)
                if any(map(_fetches, stmts[at + 1 :])):
                    raise unsupported(STAGE, "an operand is loaded after the GEMM that uses it")
                if any(map(_fetches, stmts[:at])):
                    depths.append(len(loops))
                    late, behind = [*late, *behind], []
                behind += [each for each in stmts[at + 1 :] if _accumulates(each)]
                stmt = stmts[at]
            case _:
                break
    if not depths:
        return None
    slots = [n for buffer, (n, at) in where.items() if buffer.scope in _OPERANDS and trips(at) > 1]
    steps = LoadSteps(tuple(loops[: depths[-1]]), tuple(depths), min(slots, default=1))
    _check_late_readers(late, steps, where)
    return steps


def _check_late_readers(late: Sequence[Stmt], steps: LoadSteps, where: _Homes) -> None:
    """Refuse operands that would be overwritten before what multiplies behind a step's end."""
    for stmt in late:
        for kernel in of_kind(stmt, MicroKernel):
            for ref in (kernel.src, kernel.wgt):
                if ref is None or ref.buffer not in where:
                    continue
                copies, home = where[ref.buffer]
                each = steps.count // trips(home)
                if trips(home) > copies and (copies - 1) * each < steps.slots:
                    why = f"{ref.buffer.name} is loaded anew while it is in use: give it two slots"
                    raise unsupported(STAGE, why)


def _step_tokens(stmt: Stmt, depth: int, steps: LoadSteps) -> Stmt:
    match stmt:
        case For(var, extent, body, kind, marks):
            return For(var, extent, _step_tokens(body, depth + 1, steps), kind, marks)
        case Seq(stmts):
            at = _first(stmts, _accumulates)
            new = [*_load_tokens(stmts[:at], depth, steps)]
            if depth == steps.depths[-1]:
                end = 1 + max(i for i, each in enumerate(stmts) if _accumulates(each))
                new += [Pop(Module.LOAD, Module.COMPUTE), *stmts[at:end], *steps.release()]
            else:
                end = at + 1
                new.append(_step_tokens(stmts[at], depth, steps))
            held = depth == steps.hold
            rest = _with_late_release(stmts[end:], steps) if held else stmts[end:]
            return sequence((*new, *rest))
        case _:
            return descend(stmt, lambda each: _step_tokens(each, depth, steps))


def _with_late_release(stmts: Sequence[Stmt], steps: LoadSteps) -> Sequence[Stmt]:
    """The end of a tile with the release after its last operation, in front of what is handed on.

    There the token rides on the operation; behind a store it would take an instruction.
    """
    end = 1 + max(at for at, each in enumerate(stmts) if _computes(each))
    return (*stmts[:end], *steps.release_late(), *stmts[end:])


def _load_tokens(stmts: Sequence[Stmt], depth: int, steps: LoadSteps) -> Iterator[Stmt]:
    """The statements before a GEMM, with tokens before the first load and after the last."""
    fetching = [at for at, stmt in enumerate(stmts) if _fetches(stmt)]
    first_reset = next((at for at, stmt in enumerate(stmts) if _resets(stmt)), None)
    for at, stmt in enumerate(stmts):
        if fetching and at == fetching[0]:
            yield from steps.wait(depth)
        yield stmt
        if depth == steps.hold and at == first_reset:
            yield from steps.begin()
        if fetching and at == fetching[-1] and depth == steps.depths[-1]:
            yield Push(Module.LOAD, Module.COMPUTE)


def _with_store_tokens(body: Stmt, where: _Homes) -> Stmt:
    """Tokens between the last write of a tile of accumulators and the store that reads it."""
    stored = {dma.sram.buffer for dma in of_kind(body, Dma) if dma.direction == "store"}
    turns = {where[tile] for tile in stored}
    if len(turns) != 1:
        raise unsupported(STAGE, f"{len(turns)} kinds of tiles are stored, not one")
    ((slots, loops),) = turns

    def visit(stmt: Stmt) -> Stmt:
        match stmt:
            case Alloc(buffer, inner, marks) if buffer in stored:
                return Alloc(buffer, _tile_tokens(inner, stored, loops, slots), marks)
            case For(var, extent, inner, kind, marks):
                return For(var, extent, visit(inner), kind, marks)
            case _:
                return descend(stmt, visit)

    return visit(body)


def _tile_tokens(stmt: Stmt, tiles: Set[Buffer], loops: Loops, slots: int) -> Stmt:
    if isinstance(stmt, Alloc):
        return Alloc(stmt.buffer, _tile_tokens(stmt.body, tiles, loops, slots), stmt.marks)
    stmts = stmt.stmts if isinstance(stmt, Seq) else (stmt,)
    first = next(at for at, each in enumerate(stmts) if _writes(each, tiles))
    last = max(at for at, each in enumerate(stmts) if _stores(each))
    new: list[Stmt] = []
    for at, each in enumerate(stmts):
        if at == first and trips(loops) > slots:
            late = Le(index(slots), turn(loops).expr())
            new.append(If(late, Pop(Module.STORE, Module.COMPUTE)))
        new.append(_handed_over(each))
        if at == last:
            new += before_the_last(loops, slots, Push(Module.STORE, Module.COMPUTE))
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


def _first(stmts: Sequence[Stmt], holds: Callable[[Stmt], bool]) -> int:
    return next(at for at, stmt in enumerate(stmts) if holds(stmt))


def _accumulates(stmt: Stmt) -> bool:
    return any(k.engine == "gemm" and not k.reset for k in of_kind(stmt, MicroKernel))


def _computes(stmt: Stmt) -> bool:
    return next(of_kind(stmt, MicroKernel), None) is not None


def _resets(stmt: Stmt) -> bool:
    return any(kernel.reset for kernel in of_kind(stmt, MicroKernel))


def _fetches(stmt: Stmt) -> bool:
    """Whether operands of a GEMM are loaded."""
    return any(dma.sram.buffer.scope in _OPERANDS for dma in of_kind(stmt, Dma))


def _stores(stmt: Stmt) -> bool:
    return any(dma.direction == "store" for dma in of_kind(stmt, Dma))


def _writes(stmt: Stmt, tiles: Set[Buffer]) -> bool:
    return any(kernel.dst.buffer in tiles for kernel in of_kind(stmt, MicroKernel))
