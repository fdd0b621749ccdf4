"""Operands that are needed behind a tile's last step are loaded during its later steps.

    load bias[0:8]                             for tile: for k in 0:4:
    for tile: for k in 0:4:               ->     load inp
      load inp;  gemm acc += inp                 if 1 <= 4*tile + k < 3: load bias[4*(k-1) : +4]
    gemm acc += bias                             gemm acc += inp
                                               gemm acc += bias

The first step's loads are what a kernel has to wait for, so that they are better short; a later
step's are done while GEMM is busy, if each is loaded a little at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tilefarm.target import Target

from compile_worker.ir.affine import Affine
from compile_worker.ir.expr import Add, And, Buffer, Const, Expr, Le, Lt, Mul, index
from compile_worker.ir.func import Func
from compile_worker.ir.nests import Loops
from compile_worker.ir.stmt import Alloc, Dma, For, If, MicroKernel, Ref, Seq, Stmt, sequence
from compile_worker.passes.nests import descend, of_kind
from compile_worker.passes.turns import trips, turn

LEAST: Final = 4
"""Elements that are worth a copy of their own."""


@dataclass(frozen=True, slots=True)
class _Step:
    """The innermost sequence that loads before it multiplies, and the loops around it."""

    stmt: Seq
    loops: Loops


def spread_loads(func: Func, target: Target) -> Func:
    """Move loads that are in front of the steps, and that no step needs, into later steps."""
    del target
    step = _step(func.body, ())
    if step is None:
        return func
    used = _read(step.stmt)
    readers = _readers(func.body, ())
    moved: list[Stmt] = []

    def visit(stmt: Stmt, depth: int) -> Stmt:
        if stmt is step.stmt:
            return _with_loads(stmt, moved) if moved else stmt
        match stmt:
            case For(var, extent, body, kind, marks):
                return For(var, extent, visit(body, depth + 1), kind, marks)
            case Seq(stmts):
                at = next(i for i, each in enumerate(stmts) if _holds(each, step.stmt))
                kept: list[Stmt] = []
                for each in stmts[:at]:
                    late = _late(each, depth, step, used, readers)
                    (kept if late is None else moved).append(each if late is None else late)
                return sequence((*kept, visit(stmts[at], depth), *stmts[at + 1 :]))
            case _:
                return descend(
                    stmt, lambda each: visit(each, depth) if _holds(each, step.stmt) else each
                )

    body = visit(func.body, 0)
    return Func(func.name, func.params, body, func.attrs) if moved else func


def _step(stmt: Stmt, loops: Loops) -> _Step | None:
    """The innermost sequence on the way to the first GEMM that loads operands before it."""
    match stmt:
        case For(body=body):
            return _step(body, (*loops, stmt))
        case Seq(stmts):
            at = next((i for i, each in enumerate(stmts) if _multiplies(each)), None)
            if at is None:
                return None
            inner = _step(stmts[at], loops)
            here = _Step(stmt, loops) if any(map(_fetches, stmts[:at])) else None
            return inner or here
        case _:
            inside = [each for each in _bodies(stmt) if _multiplies(each)]
            return _step(inside[0], loops) if inside else None


def _holds(stmt: Stmt, part: Seq) -> bool:
    return any(each is part for each in of_kind(stmt, Seq))


def _bodies(stmt: Stmt) -> list[Stmt]:
    """The statements directly in one that is neither a loop nor a sequence."""
    match stmt:
        case Alloc(body=body) | If(then=body, otherwise=None):
            return [body]
        case If(_, then, otherwise) if otherwise is not None:
            return [then, otherwise]
        case _:
            return []


def _late(
    stmt: Stmt, depth: int, step: _Step, used: set[Buffer], readers: Mapping[Buffer, int]
) -> Stmt | None:
    """A load as the later steps do it; None for what is needed before, or is no load."""
    if not isinstance(stmt, Dma) or not _fetches(stmt) or stmt.sram.buffer in used:
        return None
    reader = readers.get(stmt.sram.buffer)
    if reader is None or stmt.rows is not index(1) or not isinstance(stmt.columns, Const):
        return None
    steps, columns = trips(step.loops[reader:]), int(stmt.columns.value)
    most = min(steps - 1, max(1, columns // LEAST))
    if most < 1:
        return None
    parts = max(n for n in range(1, most + 1) if columns % n == 0)
    now = turn(step.loops[depth:])
    chunk = columns // parts
    place = now + Affine({}, -1)
    begun: list[Expr] = [Le(index(1), now.expr()), Lt(now.expr(), index(1 + parts))]
    return If(And(*begun), _chunk(stmt, place.expr(), chunk, whole=parts == 1))


def _chunk(dma: Dma, part: Expr, columns: int, *, whole: bool) -> Dma:
    offset = Mul(part, index(columns))
    refs = [
        ref if whole else Ref(ref.buffer, Add(ref.element, offset)) for ref in (dma.sram, dma.dram)
    ]
    shape = (dma.rows, index(columns), dma.stride)
    pads = (dma.pad_top, dma.pad_left, dma.pad_bottom, dma.pad_right)
    return Dma(dma.direction, refs[0], refs[1], *shape, *pads)


def _with_loads(step: Seq, loads: list[Stmt]) -> Stmt:
    """The step with more loads behind its own."""
    first = next(i for i, each in enumerate(step.stmts) if _multiplies(each))
    last = max(i for i, each in enumerate(step.stmts[:first]) if _fetches(each))
    return sequence((*step.stmts[: last + 1], *loads, *step.stmts[last + 1 :]))


def _readers(stmt: Stmt, loops: Loops) -> dict[Buffer, int]:
    """Loops around the sequence in which each operand is first read."""
    found: dict[Buffer, int] = {}

    def visit(at: Stmt, depth: int) -> None:
        match at:
            case For(body=body):
                visit(body, depth + 1)
            case Seq(stmts):
                for each in stmts:
                    if any(_multiplies(other) and other is not each for other in stmts):
                        for buffer in _read(each):
                            found[buffer] = min(found.get(buffer, depth), depth)
                    visit(each, depth)
            case _:
                for each in _bodies(at):
                    visit(each, depth)

    visit(stmt, len(loops))
    return found


def _read(stmt: Stmt) -> set[Buffer]:
    kernels = of_kind(stmt, MicroKernel)
    return {ref.buffer for k in kernels for ref in (k.src, k.wgt) if ref is not None}


def _multiplies(stmt: Stmt) -> bool:
    return any(k.engine == "gemm" and not k.reset for k in of_kind(stmt, MicroKernel))


def _fetches(stmt: Stmt) -> bool:
    return any(dma.sram.buffer.scope in ("inp", "wgt") for dma in of_kind(stmt, Dma))
