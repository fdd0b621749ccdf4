"""Failures that are alike: a workload whose every candidate fails for one cause is not worth more.

failed: too big ×1 ─► failed: too big ×2 ─► … ─► given up
any other cause: count from 1        one that ends well: never given up
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tilefarm.artifact import BuildFailure
from tilefarm.measurement import Measurement, RunFailure

from driver.search.moves import Outcome

_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d[\d.,]*|`[^`]*`")


@dataclass(frozen=True, slots=True)
class Streak:
    """Failures for one cause since the last other one; `is_over` when they count no more."""

    cause: str = ""
    count: int = 0
    is_over: bool = False


NEW: Final = Streak()

OVER: Final = Streak(is_over=True)
"""Of a task of which one candidate has ended well, or that was given up."""


def counted(streaks: Mapping[str, Streak], task: str, outcome: Outcome) -> dict[str, Streak]:
    """The streaks after one more candidate of a task has ended; the farm's faults do not count."""
    before = streaks.get(task, NEW)
    return {**streaks, task: _after(before, outcome)}


def cause(failure: BuildFailure | RunFailure) -> str:
    """Why something failed, the same for failures that differ in numbers and digests only."""
    if isinstance(failure, BuildFailure) and failure.constraint:
        return f"{failure.status.value} at {failure.stage}: {failure.constraint}"
    why = failure.why.strip().split("\n", 1)[0]
    return f"{failure.status.value}: {_NUMBER.sub('…', why)}"


def _after(streak: Streak, outcome: Outcome) -> Streak:
    if isinstance(outcome, Measurement):
        return OVER
    if streak.is_over or outcome.status.is_farm_fault:
        return streak
    now = cause(outcome)
    return Streak(now, streak.count + 1 if now == streak.cause else 1)
