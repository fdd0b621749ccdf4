"""Failure streaks: a workload whose every candidate fails for one cause is not worth more.

failed: too big ×1 ─► failed: too big ×2 ─► … ─► given up
any other cause: count from 1        one that ends well: never given up
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tilefarm.measurement import Status, Trial

_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d[\d.,]*|`[^`]*`")


@dataclass(frozen=True, slots=True)
class FailureStreak:
    """Failures for one cause since the last other one; `is_over` when they count no more."""

    cause: str = ""
    count: int = 0
    is_over: bool = False

    def after(self, trial: Trial) -> FailureStreak:
        """The streak when one more candidate has ended; the farm's faults do not count."""
        if trial.status is Status.OK:
            return OVER
        if self.is_over or trial.status.is_farm_fault:
            return self
        now = cause(trial)
        return FailureStreak(now, self.count + 1 if now == self.cause else 1)


OVER: Final = FailureStreak(is_over=True)
"""Of a task of which one candidate has ended well, or that was given up."""


def cause(trial: Trial) -> str:
    """Why something failed, the same for failures that differ in numbers and digests only."""
    why = trial.why.strip().split("\n", 1)[0]
    return f"{trial.status.value}: {_NUMBER.sub('…', why)}"
