"""A clock that a test moves."""

from __future__ import annotations


class ManualClock:
    """A clock that moves only when told to; `sleep` moves it."""

    def __init__(self, start_seconds: float = 0.0) -> None:
        self._now = start_seconds

    def wall_seconds(self) -> float:
        return self._now

    def seconds(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds

    def advance(self, seconds: float) -> None:
        """Move time forward."""
        self._now += seconds
