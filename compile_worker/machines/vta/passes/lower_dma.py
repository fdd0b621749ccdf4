"""Copies between DRAM and the chip become two-dimensional DMA instructions.

    for r in 0:8: for c in 0:16: for b, i:               dma load wgt[0] <- weight[16*o]
      block w {dma=load}: w[r, c, b, i]              ->    rows 8, columns 16, stride 64
        = weight[r, 16*o + c, b, i]

Loops are sorted by their step on the chip and merged where both sides go on without a gap; the
first two are columns and rows, loops around them repeat the instruction; so does a loop whose steps
are farther apart in DRAM than rows can be. A copy of
`select(inside, image, 0)` loads what is inside and pads the rest: how much depends on how far the
tile reaches over the image's edge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tilefarm.target import Target

from compile_worker.errors import require
from compile_worker.ir.accelerator import ON_CHIP
from compile_worker.ir.annotations import ALU, DMA, TENSORIZE
from compile_worker.ir.expr import Add, Cast, Const, Expr, Load, Select, Sub, Var
from compile_worker.ir.expr import index as constant
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Block, Dma, For, Ref, Stmt, Store
from compile_worker.ir.visit import walk
from compile_worker.machines.vta.limits import dma_fields_fit
from compile_worker.machines.vta.passes.edges import Edge, edges_of
from compile_worker.machines.vta.passes.elements import (
    ElementPlace,
    element_loops,
    place_of,
    unsupported,
)
from compile_worker.passes.nests import lower_blocks, of_kind

STAGE: Final = "lower_dma"


@dataclass(frozen=True, slots=True)
class _Axis:
    """One loop of a copy: trips, steps on the chip and in DRAM, and what it reaches over."""

    var: Var | None
    extent: int
    sram: int
    dram: int
    edge: Edge | None = None

    def continues(self, inner: _Axis) -> bool:
        """Whether this loop goes on where the inner one ends, on both sides."""
        return (
            self.edge is None
            and inner.edge is None
            and self.sram == inner.sram * inner.extent
            and self.dram == inner.dram * inner.extent
        )


@dataclass(frozen=True, slots=True)
class _Copy:
    """A block that copies: its two sides, and what of the image it may take."""

    direction: str
    sram: ElementPlace
    dram: ElementPlace
    inside: Expr | None


def lower_dma(func: Func, target: Target) -> Func:
    """Replace blocks marked {dma=...} by DMA instructions.

    Raises:
        Refused: a copy that no DMA does, or a block that is left to the host and reaches the chip.
    """
    del target
    lowered = lower_blocks(func, DMA, _instructions)
    for block in of_kind(lowered.body, Block):
        if not TENSORIZE.is_on(block) and not ALU.is_on(block):
            _stay_off_the_chip(block)
    return lowered


def _stay_off_the_chip(block: Block) -> None:
    for access in walk(block.body):
        if isinstance(access, Load | Store) and access.buffer.scope in ON_CHIP:
            reached = f"{access.buffer.name} in {access.buffer.scope}"
            raise unsupported(STAGE, f"{block.name} runs on the host, which cannot reach {reached}")


def _instructions(block: Block, loops: Sequence[For], around: Mapping[Var, int]) -> Stmt:
    extents = {**around, **{loop.var: loop.extent for loop in loops}}
    copy = _copy(block, extents)
    inner = element_loops(loops, (copy.sram, copy.dram))
    edges = edges_of(STAGE, copy.inside, copy.dram.dims, inner, extents)
    axes = sorted(
        (
            _Axis(
                loop.var,
                loop.extent,
                copy.sram.element.terms.get(loop.var, 0),
                copy.dram.element.terms.get(loop.var, 0),
                next((edge for edge in edges if edge.var is loop.var), None),
            )
            for loop in inner
        ),
        key=lambda axis: axis.sram,
    )
    columns, rows, repeats = _two_dimensions(axes)
    for edge in edges:
        if edge.var is None:  # a single row, which in some iteration does not exist at all
            require(STAGE, dma_fields_fit(0, columns.extent, 0, (0, 0, 0, 0)))
        if edge not in (columns.edge, rows.edge):
            raise unsupported(STAGE, f"{block.name} pads an axis that is neither rows nor columns")
    dma = _dma(copy, [loop.var for loop in inner], columns, rows, repeats, extents)
    for axis in reversed(repeats):
        assert axis.var is not None
        dma = For(axis.var, axis.extent, dma)
    return dma


def _copy(block: Block, extents: Mapping[Var, int]) -> _Copy:
    """What a block copies; raises Refused if it does anything else."""
    match block.body:
        case Store(_, _, Load() as load) as store if DMA.of(block) == "load":
            inside = None
        case Store(_, _, Select(inside, Load() as load, Const(0, _))) as store:
            pass
        case Store(_, _, Cast(_, Load() as load)) as store:
            inside = None
        case _:
            raise unsupported(STAGE, f"{block.name} does more than copy")
    to, source = place_of(STAGE, store, extents), place_of(STAGE, load, extents)
    if to.lanes != source.lanes:
        raise unsupported(STAGE, f"{block.name} moves lanes to other lanes")
    is_load = DMA.of(block) == "load"
    sram, dram = (to, source) if is_load else (source, to)
    if sram.buffer.scope not in ON_CHIP or dram.buffer.scope in ON_CHIP:
        way = f"{source.buffer.scope} to {to.buffer.scope}"
        raise unsupported(STAGE, f"{block.name} copies from {way}, not between memory and the chip")
    return _Copy("load" if is_load else "store", sram, dram, inside)


def _two_dimensions(axes: Sequence[_Axis]) -> tuple[_Axis, _Axis, list[_Axis]]:
    """Columns, rows, and the loops that stay around, outermost first."""
    rest = list(axes)
    one = _Axis(None, 1, 1, 1)
    columns = rest.pop(0) if rest and (rest[0].sram, rest[0].dram) == (1, 1) else one
    columns = _merged(columns, rest)
    rows = _Axis(None, 1, columns.extent, columns.extent)
    if rest and rest[0].sram == columns.extent and _is_stride(rest[0].dram):
        rows = _merged(rest.pop(0), rest)
    return columns, rows, rest[::-1]


def _is_stride(elements: int) -> bool:
    """Whether rows of one copy may be so far apart; of larger images each row is a copy."""
    return dma_fields_fit(1, 1, elements, (0, 0, 0, 0)) is None


def _merged(axis: _Axis, rest: list[_Axis]) -> _Axis:
    while rest and rest[0].continues(axis):
        axis = _Axis(axis.var, axis.extent * rest.pop(0).extent, axis.sram, axis.dram)
    return axis


def _dma(
    copy: _Copy,
    inner: Sequence[Var],
    columns: _Axis,
    rows: _Axis,
    repeats: Sequence[_Axis],
    extents: Mapping[Var, int],
) -> Stmt:
    here = [var for var in inner if var not in {axis.var for axis in repeats}]
    sram = copy.sram.element.without(here).expr()
    dram = copy.dram.element.without(here).expr()
    left, right = _pads(columns.edge)
    top, bottom = _pads(rows.edge)
    _check(columns, rows, extents)
    return Dma(
        copy.direction,
        Ref(copy.sram.buffer, sram),
        Ref(copy.dram.buffer, _plus(dram, (top, rows.dram), (left, columns.dram))),
        _minus(rows.extent, top, bottom),
        _minus(columns.extent, left, right),
        constant(rows.dram),
        top,
        left,
        bottom,
        right,
    )


def _pads(edge: Edge | None) -> tuple[Expr, Expr]:
    return (constant(0), constant(0)) if edge is None else (edge.before(), edge.after())


def _plus(start: Expr, *terms: tuple[Expr, int]) -> Expr:
    """Start + Σ count * step, without terms that are zero."""
    for count, step in terms:
        if count is not constant(0):
            start = Add(start, count if step == 1 else count * step)
    return start


def _minus(extent: int, *parts: Expr) -> Expr:
    left: Expr = constant(extent)
    for part in parts:
        if isinstance(part, Const) and isinstance(left, Const):
            left = constant(int(left.value) - int(part.value))
        else:
            left = Sub(left, part)
    return left


def _check(columns: _Axis, rows: _Axis, extents: Mapping[Var, int]) -> None:
    """Refuse fields that do not fit in any iteration of the loops around."""
    sizes, pads = [], []
    for axis in (rows, columns):
        whole = (0, 0, axis.extent)
        before, after, least = whole if axis.edge is None else axis.edge.worst(extents)
        sizes.append((least, axis.extent))
        pads += [before, after]
    (fewest_rows, most_rows), (fewest_columns, most_columns) = sizes
    top, bottom, left, right = pads
    reach = (top, left, bottom, right)
    require(STAGE, dma_fields_fit(fewest_rows, fewest_columns, rows.dram, reach))
    require(STAGE, dma_fields_fit(most_rows, most_columns, rows.dram, reach))
