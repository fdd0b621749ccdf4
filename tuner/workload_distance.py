"""How near one workload is to another, for schedules that may be as good for both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from tilefarm.workload import TensorSpec, Workload

_ATTRIBUTE: Final = 1.0
"""What another stride, window or number of groups adds: as much as one extent of twice the size."""
_OPERANDS: Final = 2
"""Inputs that say how large a workload is; what follows is added to its sums."""


def distance(one: Workload, other: Workload) -> float:
    """Factors of two between their extents, and what else is unlike; infinite if nothing is shared.

    Clips, shifts and whatever else is done to sums decide hardly anything about a schedule, and
    count nothing. So 0 is not the same workload, but one with the same loops.
    """
    if one.operator != other.operator:
        return math.inf
    pairs = zip(_tensors(one), _tensors(other), strict=False)
    return sum(_between(a, b) for a, b in pairs) + _ATTRIBUTE * len(_loops(one) ^ _loops(other)) / 2


def _tensors(workload: Workload) -> Iterator[TensorSpec]:
    yield from workload.inputs[:_OPERANDS]
    yield from workload.outputs[:1]


def _between(one: TensorSpec, other: TensorSpec) -> float:
    if len(one.shape) != len(other.shape) or one.dtype is not other.dtype:
        return math.inf
    return sum(abs(math.log2(a / b)) for a, b in zip(one.shape, other.shape, strict=True))


def _loops(workload: Workload) -> set[tuple[str, object]]:
    """Attributes that say what loops there are: windows, and how channels are divided."""
    return {
        (name, value)
        for name, value in workload.attrs
        if isinstance(value, tuple | str)
        or name in ("groups", "planes", "data_planes", "out_planes")
    }
