"""Tensorized blocks become GEMM instructions with their micro-ops.

    for h: for k: for b, o, i:                        gemm acc[0] += inp[0] * wgt[0]
      block conv {tensorize=gemm}:              ->      loops (h: dst 1, src 2, wgt 0), (k: ...)
        acc[h, b, o] += inp[2*h + k, b, i] * wgt[k, o, i]     uops (0, 0, 0)

The two outermost loops that run more than once become hardware loops, the others micro-ops. Blocks
that start an accumulation become instructions with the reset flag. A reduction that multiplies the
same vector with one tile after the other is an instruction for every tile, and so is a loop that is
marked {host=1}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tilefarm.dtype import DType
from tilefarm.target import Target

from compile_worker.ir.annotations import HOST, TENSORIZE
from compile_worker.ir.expr import Add, Cast, Const, Expr, Load, Mul, Var
from compile_worker.ir.func import Func
from compile_worker.ir.nests import wrap
from compile_worker.ir.stmt import Block, For, MicroKernel, Ref, Stmt, Store
from compile_worker.machines.vta.passes.elements import (
    ElementPlace,
    element_loops,
    place_of,
    unsupported,
)
from compile_worker.machines.vta.passes.micro import LoopStep, folded, merged
from compile_worker.passes.nests import lower_blocks

STAGE: Final = "lower_gemm"


def lower_gemm(func: Func, target: Target) -> Func:
    """Replace blocks marked {tensorize=...} by GEMM instructions."""

    def lowered(block: Block, loops: Sequence[For], around: Mapping[Var, int]) -> Stmt:
        extents = {**around, **{loop.var: loop.extent for loop in loops}}
        if TENSORIZE.of(block) == "reset":
            return _reset(block, loops, extents, target)
        return _accumulate(block, loops, extents, target)

    return lower_blocks(func, TENSORIZE, lowered)


def _accumulate(
    block: Block, loops: Sequence[For], extents: Mapping[Var, int], target: Target
) -> Stmt:
    dst, src, wgt = _operands(block, extents)
    if dst.lanes[0] != src.lanes[0] or wgt.lanes != (dst.lanes[1], src.lanes[1]):
        raise unsupported(STAGE, f"{block.name} does not multiply [b, i] by [o, i]")
    repeated = element_loops(loops, (dst, src, wgt))
    moving = [f for f in repeated if f.var in dst.element.terms or f.var in src.element.terms]
    inner = [loop for loop in moving if not HOST.of(loop)]
    repeats = [loop for loop in repeated if loop not in inner]
    steps = [
        LoopStep(f.extent, *(p.element.terms.get(f.var, 0) for p in (dst, src, wgt))) for f in inner
    ]
    if not src.element.over(loop.var for loop in inner).terms:
        steps = merged(steps)
    hardware, uops = folded(STAGE, target, steps, "gemm")
    own = [loop.var for loop in inner]
    refs = [Ref(p.buffer, p.element.without(own).expr()) for p in (dst, src, wgt)]
    kernel = MicroKernel("gemm", "mac", refs[0], refs[1], refs[2], hardware, uops)
    return wrap(repeats, kernel)


def _operands(
    block: Block, extents: Mapping[Var, int]
) -> tuple[ElementPlace, ElementPlace, ElementPlace]:
    """dst, src and wgt of dst += int32(src) * int32(wgt)."""
    match block.body:
        case Store(to, at, Add(Load(old, where), Mul(Cast() as left, Cast() as right))) as store:
            data, weight = _narrow(left), _narrow(right)
            if data and weight and to is old and at == where:
                dst, src, wgt = (place_of(STAGE, a, extents) for a in (store, data, weight))
                if (to.scope, src.buffer.scope, wgt.buffer.scope) == ("acc", "inp", "wgt"):
                    return dst, src, wgt
    raise unsupported(STAGE, f"{block.name} is not acc += int32(inp) * int32(wgt)")


def _narrow(cast: Expr) -> Load | None:
    match cast:
        case Cast(DType.INT32, Load() as load) if load.dtype is DType.INT8:
            return load
        case _:
            return None


def _reset(block: Block, loops: Sequence[For], extents: Mapping[Var, int], target: Target) -> Stmt:
    match block.body:
        case Store(_, _, Const(0, _)) as store:
            dst = place_of(STAGE, store, extents)
        case _:
            raise unsupported(STAGE, f"{block.name} starts with something else than 0")
    inner = element_loops(loops, (dst,))
    steps = sorted(
        (LoopStep(loop.extent, dst.element.terms.get(loop.var, 0)) for loop in inner),
        key=lambda step: -step.dst,
    )
    hardware, uops = folded(STAGE, target, merged(steps), "gemm")
    to = Ref(dst.buffer, dst.element.without([loop.var for loop in inner]).expr())
    return MicroKernel("gemm", "reset", to, None, None, hardware, uops, reset=True)
