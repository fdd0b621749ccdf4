"""What a network costs before anything is measured, so that plans can be compared."""

from __future__ import annotations

import math
from typing import Final

from compile_worker.space import lower_bound_cycles
from driver.integer.network import Network, NetworkStep

_PER_CYCLE: Final = 2.5
"""Multiply-accumulates or elements of the processor in a cycle of the accelerator. A kernel without
vectors takes 2.4 cycles of the processor for one (`tilefarm bench cpu`, real_conv2d), and boards
have processors of some 650 MHz beside an accelerator of 100 MHz."""


def estimated_cycles(network: Network) -> int:
    """Of one run: the least that the accelerator needs, and what the processor does besides.

    Nothing of it is measured. Networks for the same target are compared by it, no more.
    """
    return round(sum(_cycles(step, network) for step in network.steps))


def cycles_in_float(work: float) -> float:
    """Of the accelerator, while the processor does so many multiply-accumulates or elements."""
    return work / _PER_CYCLE


def _cycles(step: NetworkStep, network: Network) -> float:
    if step.place == "accelerator":
        return lower_bound_cycles(step.workload, network.target)
    made = sum(math.prod(network.tensors[name].shape) for name in step.outputs)
    return cycles_in_float(max(step.macs, made))
