"""One part of an instruction that works on accumulators in a row: fewer trips, further on.

    for co in 0:4: alu shr acc[co*64 : +64]       part 0 to 7, of 32 accumulators:
    store acc[0:256]                        ->      alu shr acc[part*32 : +32]; store acc[part*32 :]

An instruction's loops, those of the host around it included, are the axes along which it can be
cut; a cut goes through the outermost axis that is longer than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compile_worker.ir.expr import Add, Const, Expr, Mul, Var
from compile_worker.ir.expr import index as constant
from compile_worker.ir.stmt import Dma, For, HardwareLoop, MicroKernel, Ref, Stmt
from compile_worker.ir.visit import substitute
from compile_worker.machines.vta.passes.slots import base_of


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut: the variable that counts the parts, how many there are, and accumulators in each."""

    var: Var
    count: int
    size: int


@dataclass(slots=True)
class _Axis:
    """Trips and the step between them in accumulators; the place of each part is added up."""

    extent: int
    step: int
    start: Expr


def part_of(stmt: Stmt, levels: Sequence[Cut]) -> Stmt | None:
    """The part of an instruction at the levels' variables; None if it cannot be cut so."""
    inner = stmt.body if isinstance(stmt, For) else stmt
    if not isinstance(inner, MicroKernel | Dma):
        return None
    axes = [*_host_axis(stmt, inner), *_axes(inner)]
    if not all(_narrow(axes, level) for level in levels):
        return None
    own = axes[-len(_axes(inner)) :] if _axes(inner) else []
    cut = _kernel(inner, own) if isinstance(inner, MicroKernel) else _store(inner, own)
    return _repeated(stmt, axes[0], cut) if isinstance(stmt, For) else cut


def _host_axis(stmt: Stmt, inner: MicroKernel | Dma) -> list[_Axis]:
    """The loop of the host around an instruction, if there is one."""
    if not isinstance(stmt, For):
        return []
    place = inner.dst if isinstance(inner, MicroKernel) else inner.sram
    return [_Axis(stmt.extent, dict(base_of(place).terms).get(stmt.var, 0), constant(0))]


def _repeated(loop: For, axis: _Axis, cut: Stmt) -> Stmt:
    """What is left of the host's loop around a cut instruction."""
    repeated = axis.extent > 1
    first = _plus(loop.var, axis.start) if repeated else axis.start
    cut = substitute(cut, {loop.var: first})
    return For(loop.var, axis.extent, cut) if repeated else cut


def _axes(stmt: MicroKernel | Dma) -> list[_Axis]:
    if isinstance(stmt, MicroKernel):
        sizes = [(loop.extent, loop.dst) for loop in stmt.loops]
    else:
        sizes = [(_number(stmt.rows), _number(stmt.columns)), (_number(stmt.columns), 1)]
    return [_Axis(extent, step, constant(0)) for extent, step in sizes]


def _number(expr: Expr) -> int:
    return int(expr.value) if isinstance(expr, Const) else 0


def _narrow(axes: Sequence[_Axis], level: Cut) -> bool:
    """Cut the outermost axis that is longer than one; False if that does not give such parts."""
    axis = next((each for each in axes if each.extent > 1), None)
    if axis is None or axis.extent % level.count:
        return False
    trips = axis.extent // level.count
    inner = sum((e.extent - 1) * e.step for e in axes[list(axes).index(axis) + 1 :])
    if trips * axis.step != level.size or inner >= axis.step:
        return False
    axis.extent = trips
    axis.start = _plus(axis.start, level.var, trips)
    return True


def _kernel(kernel: MicroKernel, axes: Sequence[_Axis]) -> MicroKernel:
    dst, src = kernel.dst, kernel.src
    loops = []
    for axis, loop in zip(axes, kernel.loops, strict=True):
        dst = _moved(dst, axis.start, loop.dst)
        src = None if src is None else _moved(src, axis.start, loop.src)
        if axis.extent > 1:
            loops.append(HardwareLoop(axis.extent, loop.dst, loop.src, loop.wgt))
    return MicroKernel(
        kernel.engine, kernel.opcode, dst, src, None, tuple(loops), kernel.uops, kernel.imm
    )


def _store(dma: Dma, axes: Sequence[_Axis]) -> Dma:
    rows, columns = axes
    sram = _moved(_moved(dma.sram, rows.start, rows.step), columns.start, 1)
    dram = _moved(_moved(dma.dram, rows.start, _number(dma.stride)), columns.start, 1)
    shape = (constant(rows.extent), constant(columns.extent), dma.stride)
    pads = (dma.pad_top, dma.pad_left, dma.pad_bottom, dma.pad_right)
    return Dma(dma.direction, sram, dram, *shape, *pads)


def _moved(ref: Ref, start: Expr, step: int) -> Ref:
    return Ref(ref.buffer, _plus(ref.element, start, step)) if step else ref


def _plus(left: Expr, right: Expr, factor: int = 1) -> Expr:
    """Left + right * factor, without terms that are zero."""
    if right is constant(0):
        return left
    further = right if factor == 1 else Mul(right, constant(factor))
    return further if left is constant(0) else Add(left, further)
