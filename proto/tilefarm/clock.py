"""Time as a parameter: the system's clock, and one that a test moves by hand."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where a component gets its time from."""

    def wall_seconds(self) -> float:
        """Seconds since the Unix epoch; for display and records, never for durations."""
        ...

    def seconds(self) -> float:
        """Monotonic seconds; for durations and deadlines."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        ...


class SystemClock:
    """The machine's own time."""

    def wall_seconds(self) -> float:
        return time.time()

    def seconds(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
