"""The last thing that a run tells, and who listens to all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from driver.report.summary import RunSummary
from driver.run_events import Progress, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The run is over; `paths` are (what, where) of its outputs."""

    summary: RunSummary
    paths: tuple[tuple[str, str], ...]
    seconds: float


Shown: TypeAlias = Progress | Ended

Listener: TypeAlias = Callable[[Shown | Span], None]
"""Takes every event once, in order, on one thread."""
