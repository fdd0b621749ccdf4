"""Accumulators to int8 by constants: round, shift, clip, a stage for each ALU operation."""

from __future__ import annotations

from typing import Final

from tilefarm.workload import Workload

from compile_worker.te.operators.elementwise import elementwise, narrowed
from compile_worker.te.tensor import Tensor

WIDEST_SHIFT: Final = 15
"""Bits that one SHR by a constant moves on every hardware; its rounding fits a constant, too."""


def rounded(workload: Workload, wide: Tensor) -> list[Tensor]:
    """Stages [shifted_*], [rounded], [shifted], lower, upper and the output.

    The output is clip((wide + round) >> shift, lo, hi) with round = 1 << (shift - 1), or 0. A wide
    shift takes several steps; what the first ones drop does not reach the rounding bit:

        (x + 2**(s-1)) >> s  ==  ((x >> 15) + 2**(s-16)) >> (s - 15)      for s > 15
    """
    shift = workload.attr_int("shift")
    stages = [wide]
    while shift > WIDEST_SHIFT:
        stages.append(_down(f"shifted_{len(stages)}", stages[-1], WIDEST_SHIFT))
        shift -= WIDEST_SHIFT
    if shift:
        stages.append(_up("rounded", stages[-1], 1 << (shift - 1)))
        stages.append(_down("shifted", stages[-1], shift))
    name, low, high = workload.outputs[0].name, workload.attr_int("lo"), workload.attr_int("hi")
    return [*stages[1:], *narrowed(name, stages[-1], low, high)]


def _down(name: str, x: Tensor, bits: int) -> Tensor:
    return elementwise(name, x, lambda *at: x[at] >> bits)


def _up(name: str, x: Tensor, amount: int) -> Tensor:
    return elementwise(name, x, lambda *at: x[at] + amount)
