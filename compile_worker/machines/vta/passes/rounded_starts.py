"""Sums start from the constant that rounds them, without being reset.

    for t in 0:8:                                for t in 0:8:
      gemm reset acc[0:64]                         if t < 1: gemm reset acc[0:64]
      gemm acc[0:64] += a * w              ->      alu max acc[0:64], 128
      alu add acc[0:64], 128                       gemm acc[0:64] += a * w
      alu shr 8; alu max 0; alu min 127            alu shr 8; alu max 0; alu min 127
      store acc[0:64]                              store acc[0:64]

What the last tile left in an accumulator lies between its clips, so the maximum with a larger
constant is that constant: one operation instead of two. Where the rounding is too small for that, a
multiple of 256 is added to the results, which the store drops with the upper bits:

    (x + r + (k << (8 + s))) >> s  =  ((x + r) >> s) + 256 * k
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from tilefarm.target import Target

from compile_worker.ir.accelerator import IMMEDIATE
from compile_worker.ir.annotations import COPIES
from compile_worker.ir.expr import INDEX, Buffer, Const, Expr, Lt, Mul, index
from compile_worker.ir.func import Func
from compile_worker.ir.nests import Loops
from compile_worker.ir.stmt import (
    Alloc,
    Dma,
    For,
    If,
    MicroKernel,
    Seq,
    Stmt,
    sequence,
)
from compile_worker.machines.vta.passes.elements import elements_of
from compile_worker.passes.nests import descend, of_kind
from compile_worker.passes.turns import slot, trips, turn

_EPILOGUE: Final = ("add", "shr", "max", "min")
_STORED_BITS: Final = 8


@dataclass(frozen=True, slots=True)
class Start:
    """What accumulators begin with, and by how much all results are larger for it."""

    opcode: str
    value: int
    offset: int


def start_of(rounding: int, shift: int, low: int, high: int) -> Start | None:
    """A constant to begin with that every value from `low` to `high`, and 0, can be turned into.

    By a maximum or a minimum with it; None if 16 bits hold no such constant.
    """
    for multiple in (0, 1, -1):
        offset = multiple << _STORED_BITS
        value = rounding + (offset << shift)
        ends = (low + offset, high + offset)
        if any(each not in IMMEDIATE for each in (value, *ends)):
            continue
        if value >= max(0, *ends):
            return Start("max", value, offset)
        if value <= min(0, *ends):
            return Start("min", value, offset)
    return None


def rounded_starts(func: Func, target: Target) -> Func:
    """Let every tile of sums that is rounded by a constant start from it."""
    del target
    copies = {
        alloc.buffer: COPIES.of(alloc)
        for alloc in of_kind(func.body, Alloc)
        if alloc.buffer.scope == "acc"
    }
    body = func.body
    for buffer in {dma.sram.buffer for dma in of_kind(body, Dma) if dma.direction == "store"}:
        written = [kernel for kernel in of_kind(body, MicroKernel) if kernel.dst.buffer is buffer]
        body = _rewritten(body, (), buffer, written, copies[buffer])
    return Func(func.name, func.params, body, func.attrs)


def _rewritten(
    stmt: Stmt, path: Loops, buffer: Buffer, written: Sequence[MicroKernel], copies: int
) -> Stmt:
    """The statement with the one tile of `buffer` in it, if there is one, changed."""
    match stmt:
        case For(var, extent, body, kind, marks):
            inner = _rewritten(body, (*path, stmt), buffer, written, copies)
            return For(var, extent, inner, kind, marks)
        case Seq(stmts) if written and written[0] in stmts:
            start = _start(stmt, path, buffer, written, copies)
            return stmt if start is None else _started(stmt, path, copies, start, written)
        case _:
            return descend(stmt, lambda each: _rewritten(each, path, buffer, written, copies))


def _start(
    tile: Seq, path: Loops, buffer: Buffer, written: Sequence[MicroKernel], copies: int
) -> Start | None:
    """What a tile can start from; None if it is not reset, summed, rounded, shifted and clipped.

    Every part of that has to be done to all of the tile, which has to be all of its slot.
    """
    reset, *rest = written
    sums = [kernel for kernel in rest if kernel.opcode == "mac"]
    epilogue = rest[len(sums) :]
    if not reset.reset or not sums or tuple(k.opcode for k in epilogue) != _EPILOGUE:
        return None
    size = elements_of(buffer) // copies
    counts = dict(_counts(tile, 1))
    if any(counts.get(kernel) != size for kernel in (reset, *epilogue)):
        return None
    if trips(path) <= copies or reset.dst.element is not _first(path, copies, size):
        return None
    constants = [kernel.imm for kernel in epilogue]
    if not all(isinstance(each, int) for each in constants):
        return None
    rounding, shift, low, high = (each for each in constants if isinstance(each, int))
    return start_of(rounding, shift, low, high)


def _counts(stmt: Stmt, times: int) -> Iterator[tuple[MicroKernel, int]]:
    """Every instruction below a statement, with how many elements it writes in all."""
    match stmt:
        case For(extent=extent, body=body):
            yield from _counts(body, times * extent)
        case Seq(stmts):
            for each in stmts:
                yield from _counts(each, times)
        case MicroKernel(loops=loops, uops=uops):
            yield stmt, times * len(uops) * prod(loop.extent for loop in loops)


def _first(path: Loops, copies: int, size: int) -> Expr:
    """The first element of the slot that it is the turn of."""
    at = slot(path, copies)
    return index(0) if isinstance(at, Const) else Mul(at, Const(size, INDEX))


def _started(
    tile: Seq, path: Loops, copies: int, start: Start, written: Sequence[MicroKernel]
) -> Stmt:
    reset, *_, added, _, lower, upper = written
    begins = Lt(turn(path).expr(), index(copies))
    constant = MicroKernel(
        "alu", start.opcode, reset.dst, None, None, reset.loops, reset.uops, imm=start.value
    )
    moved = {
        reset: sequence((If(begins, reset), constant)),
        added: sequence(()),
        lower: _moved(lower, start.offset),
        upper: _moved(upper, start.offset),
    }

    def visit(stmt: Stmt) -> Stmt:
        match stmt:
            case MicroKernel():
                return moved.get(stmt, stmt)
            case For(var, extent, body, kind, marks):
                return For(var, extent, visit(body), kind, marks)
            case _:
                return descend(stmt, visit)

    return visit(tile)


def _moved(clip: MicroKernel, offset: int) -> MicroKernel:
    assert isinstance(clip.imm, int)
    imm = clip.imm + offset
    return MicroKernel("alu", clip.opcode, clip.dst, None, None, clip.loops, clip.uops, imm=imm)
