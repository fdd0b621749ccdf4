"""Loops over hardware elements, folded into the two hardware loops and unrolled into micro-ops.

for h: for w: for k: ...   ->   loops (h, w), one micro-op per k
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from tilefarm.target import Target

from compile_worker.errors import require
from compile_worker.ir.stmt import HardwareLoop, MicroOp
from compile_worker.machines.vta.limits import (
    Engine,
    acc_distance,
    acc_distance_ok,
    loop_fields_fit,
    uop_capacity,
    uops_fit,
)

_HARDWARE_LOOPS: Final = 2
"""A GEMM or ALU instruction has two, an outer and an inner one: iter_out and iter_in."""


@dataclass(frozen=True, slots=True)
class LoopStep:
    """One loop: trips, and the steps of the three operands in elements."""

    extent: int
    dst: int
    src: int = 0
    wgt: int = 0

    def continues(self, inner: LoopStep) -> bool:
        """Whether this loop goes on where the inner one ends, for every operand."""
        return all(
            outer == step * inner.extent
            for outer, step in (
                (self.dst, inner.dst),
                (self.src, inner.src),
                (self.wgt, inner.wgt),
            )
        )


def merged(steps: Sequence[LoopStep]) -> list[LoopStep]:
    """The same iterations in the same order with as few loops as possible."""
    found: list[LoopStep] = []
    for step in steps:
        if found and found[-1].continues(step):
            outer = found.pop()
            step = LoopStep(outer.extent * step.extent, step.dst, step.src, step.wgt)
        found.append(step)
    return found


def folded(
    stage: str, target: Target, steps: Sequence[LoopStep], engine: Engine
) -> tuple[tuple[HardwareLoop, ...], tuple[MicroOp, ...]]:
    """The outermost two loops as hardware loops, the others as micro-ops in nest order.

    Raises:
        Refused: too many micro-ops, fields too narrow, or an accumulator written again too soon.
    """
    outer, inner = steps[:_HARDWARE_LOOPS], steps[_HARDWARE_LOOPS:]
    loops = tuple(HardwareLoop(s.extent, s.dst, s.src, s.wgt) for s in outer)
    count = 1
    for step in inner:
        count *= step.extent
    if count > uop_capacity(target):
        require(stage, uops_fit(target, count))
    uops = tuple(
        MicroOp(
            sum(i * s.dst for i, s in zip(at, inner, strict=True)),
            sum(i * s.src for i, s in zip(at, inner, strict=True)),
            sum(i * s.wgt for i, s in zip(at, inner, strict=True)),
        )
        for at in product(*(range(s.extent) for s in inner))
    )
    require(stage, loop_fields_fit(target, loops, uops, engine=engine))
    require(stage, acc_distance_ok(target, acc_distance(loops, uops)))
    return loops, uops
