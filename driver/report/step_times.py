"""What steps of a network take, in nanoseconds: predicted and measured beside each other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_STEPS: Final = 10
MOST_OFF: Final = 0.10
"""A critical step that takes so much more or less than was predicted makes a plan doubtful."""


class Basis(StrEnum):
    """Where a time comes from."""

    PROGRAM = "program"
    """Measured, as a layer of the whole program."""
    KERNEL = "kernel"
    """Measured, as a kernel alone: the best trial of its workload."""
    MODEL = "model"
    """Not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Nanoseconds of a step: the median, and from the 10th to the 90th percentile."""

    basis: Basis
    median: float
    p10: float
    p90: float

    @property
    def ticks(self) -> int:
        """The median; a nanosecond is a tick."""
        return max(1, round(self.median))

    @property
    def samples(self) -> tuple[int, ...]:
        """Eleven durations spread as the percentiles say, the median in their middle; none where
        it takes the same always.
        """
        if self.p10 == self.p90:
            return ()
        shares = [min(max(at / _STEPS, 0.1), 0.9) for at in range(_STEPS + 1)]
        return tuple(max(1, round(self._at(share))) for share in shares)

    def _at(self, share: float) -> float:
        if share <= 0.5:
            return self.p10 + (self.median - self.p10) * (share - 0.1) / 0.4
        return self.median + (self.p90 - self.median) * (share - 0.5) / 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedStep:
    """A step's predicted and measured time; `is_critical` in the plan of the predicted ones."""

    name: str
    predicted: StepTime
    measured: StepTime
    is_critical: bool

    @property
    def off(self) -> float:
        """How much more it takes than was predicted, relatively; below 0 where it is less."""
        return self.measured.median / self.predicted.median - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTimes:
    """Times to plan with, and how far the predicted ones were off.

    Attributes:
        times: predicted ones, or, where that `is_refitted`, measured ones.
        steps: all that were predicted and measured, in the order of the network.
    """

    times: Mapping[str, StepTime]
    steps: tuple[ComparedStep, ...]

    @property
    def misfits(self) -> tuple[ComparedStep, ...]:
        """Critical steps that are off by more than the limit, the furthest first."""
        off = (each for each in self.steps if each.is_critical and abs(each.off) > MOST_OFF)
        return tuple(sorted(off, key=lambda each: -abs(each.off)))

    @property
    def is_refitted(self) -> bool:
        return bool(self.misfits)


def modelled_share(times: Mapping[str, StepTime]) -> float:
    """How much of the whole time was not measured, 0 to 1."""
    whole = math.fsum(each.median for each in times.values())
    made_up = math.fsum(each.median for each in times.values() if each.basis is Basis.MODEL)
    return made_up / whole if whole else 0.0
