"""What a network costs, where not all is measured, so that plans can be compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tilefarm.workload import Workload

from compile_worker.space import lower_bound_cycles
from driver.network.integer.network import Network, NetworkStep

_PER_CYCLE: Final = 2.5
"""Multiply-accumulates or elements of the processor in a cycle of the accelerator. A kernel without
vectors takes 2.4 cycles of the processor for one (`tilefarm bench cpu`, real_conv2d), and boards
have processors of some 650 MHz beside an accelerator of 100 MHz."""


_NOTHING: Final[Mapping[Workload, int]] = MappingProxyType({})


def estimated_cycles(network: Network, known: Mapping[Workload, int] = _NOTHING) -> int:
    """Of one run: the least that the accelerator needs, and what the processor does besides.

    Networks for the same target are compared by it, no more.

    Args:
        known: cycles of kernels that were measured.
    """
    return round(sum(_cycles(step, network, known) for step in network.steps))


def cycles_in_float(work: float) -> float:
    """Of the accelerator, while the processor does so many multiply-accumulates or elements."""
    return work / _PER_CYCLE


def _cycles(step: NetworkStep, network: Network, known: Mapping[Workload, int]) -> float:
    if step.place == "accelerator":
        if step.workload in known:
            return known[step.workload]
        return lower_bound_cycles(step.workload, network.target)
    made = sum(math.prod(network.tensors[name].shape) for name in step.outputs)
    if step.workload.operator == "border":
        made -= math.prod(step.workload.within)
    return cycles_in_float(max(step.macs, made))
