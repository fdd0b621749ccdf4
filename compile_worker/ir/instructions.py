"""Whether copies and micro-op kernels stay within their buffers, by trying every iteration.

What interpretation finds on small programs, this finds on those of real layers: it evaluates only
the few numbers that instructions take, for all iterations at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from tilefarm.plural import plural
from tilefarm.vta_isa import TRANSFER

from compile_worker.ir.accesses import LIMIT, conjuncts, every_value, negated
from compile_worker.ir.annotations import BATCH, BLOCK
from compile_worker.ir.bounds import Extents, extents_of
from compile_worker.ir.evaluate import Array, Value, evaluate
from compile_worker.ir.expr import Buffer, Expr, Var
from compile_worker.ir.findings import Finding
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Dma, If, MicroKernel, Ref, Stmt
from compile_worker.ir.visit import children, variables

PAD_LIMIT: Final = TRANSFER.field("y_pad_0").values[-1]


def misplaced(func: Func) -> Iterator[Finding]:
    """What instructions do wrong: the reason, and which instruction."""
    batch, block = BATCH.of(func), BLOCK.of(func)
    lanes = {"inp": batch * block, "acc": batch * block, "wgt": block * block}
    extents = extents_of(func.body)
    for stmt, conditions in _instructions(func.body, ()):
        tried = _Tried.of(stmt, conditions, extents)
        if tried is None:
            yield "takes too many iterations to check", stmt
        elif isinstance(stmt, Dma):
            yield from ((why, stmt) for why in _copy(stmt, tried, lanes))
        else:
            yield from ((why, stmt) for why in _kernel(stmt, tried, lanes))


def _instructions(
    stmt: Stmt, conditions: tuple[Expr, ...]
) -> Iterator[tuple[Dma | MicroKernel, tuple[Expr, ...]]]:
    match stmt:
        case Dma() | MicroKernel():
            yield stmt, conditions
        case If(condition, then, otherwise):
            yield from _instructions(then, (*conditions, *conjuncts(condition)))
            if otherwise is not None:
                yield from _instructions(otherwise, (*conditions, *negated(condition)))
        case _:
            for child in children(stmt):
                if isinstance(child, Stmt):
                    yield from _instructions(child, conditions)


@dataclass(frozen=True, slots=True)
class _Tried:
    """All iterations in which an instruction is executed."""

    values: Mapping[Var, Array]
    happens: Value

    @classmethod
    def of(cls, stmt: Stmt, conditions: tuple[Expr, ...], extents: Extents) -> _Tried | None:
        free = {var for each in (stmt, *conditions) for var in variables(each)}
        if math.prod(extents[var] for var in free) > LIMIT:
            return None
        values = every_value(free, extents)
        happens: Value = True
        for condition in conditions:
            happens = np.logical_and(happens, evaluate(condition, values, {}))
        return cls(values, happens)

    def __call__(self, expr: Expr) -> Value:
        return evaluate(expr, self.values, {})

    def ever(self, wrong: Value) -> bool:
        return bool(np.any(np.logical_and(wrong, self.happens)))


def _elements(buffer: Buffer, lanes: int) -> int:
    return math.prod(buffer.shape) // lanes


def _beyond(what: Ref, first: Value, last: Value, tried: _Tried, lanes: int) -> Iterator[str]:
    count = _elements(what.buffer, lanes)
    if tried.ever(np.less(first, 0) | np.greater_equal(last, count)):
        yield f"reaches beyond {what.buffer.name}, which has {plural(count, 'element')}"


def _copy(dma: Dma, tried: _Tried, lanes: Mapping[str, int]) -> Iterator[str]:
    rows, columns = tried(dma.rows), tried(dma.columns)
    top, left, bottom, right = pads = [
        tried(pad) for pad in (dma.pad_top, dma.pad_left, dma.pad_bottom, dma.pad_right)
    ]
    if tried.ever(np.less(rows, 1) | np.less(columns, 1)):
        yield "copies nothing, which the accelerator cannot do"
    if any(tried.ever(np.less(pad, 0) | np.greater(pad, PAD_LIMIT)) for pad in pads):
        yield f"has a pad outside 0..{PAD_LIMIT}"
    width = lanes[dma.sram.buffer.scope]
    here, there = tried(dma.sram.element), tried(dma.dram.element)
    filled = (top + rows + bottom) * (left + columns + right)
    yield from _beyond(dma.sram, here, here + filled - 1, tried, width)
    last = there + (rows - 1) * tried(dma.stride) + columns - 1
    yield from _beyond(dma.dram, there, last, tried, width)


def _kernel(kernel: MicroKernel, tried: _Tried, lanes: Mapping[str, int]) -> Iterator[str]:
    for name in ("dst", "src", "wgt"):
        ref = getattr(kernel, name)
        if ref is not None:
            offsets = [getattr(uop, name) for uop in kernel.uops]
            reach = sum((loop.extent - 1) * getattr(loop, name) for loop in kernel.loops)
            base = tried(ref.element)
            first, last = base + min(offsets), base + max(offsets) + reach
            yield from _beyond(ref, first, last, tried, lanes[ref.buffer.scope])
