"""What a device has done since its server began: runs, and how long something ran on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilefarm.clock import Clock
from tilefarm.rpc.tracker_calls import Usage


class UsageCounters:
    """Only grows; one thing runs at a time. Lives in one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.seconds()
        self._runs = 0
        self._busy_seconds = 0.0
        self._busy_since: float | None = None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Within, something runs on the device."""
        self._busy_since = self._clock.seconds()
        try:
            yield
        finally:
            self._busy_seconds += self._clock.seconds() - self._busy_since
            self._busy_since = None

    def ran(self) -> None:
        """A run has ended, however it did."""
        self._runs += 1

    @property
    def usage(self) -> Usage:
        """All of it; what runs at this moment counts up to now."""
        now = self._clock.seconds()
        running = 0.0 if self._busy_since is None else now - self._busy_since
        return Usage(
            runs=self._runs,
            busy_seconds=self._busy_seconds + running,
            up_seconds=now - self._began,
        )
