"""The time in which a tracker could hear: silence while it stood still counts against nobody."""

from __future__ import annotations

from typing import Final

from tilefarm.clock import Clock

LONGEST_SECONDS: Final = 1.0
"""What may pass between two looks; a tracker that runs looks four times a second."""


class ListeningClock:
    """A clock that goes on while somebody looks at it. Not thread-safe.

    A process may be kept from running for a while, as a whole: its machine is moved, or does other
    things. Devices and users called meanwhile, and all that they have would run out before their
    calls are heard. So such a while lasts a moment here, as the time between two lives of a tracker
    does.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looked = clock.seconds()
        self._seconds = self._looked

    def wall_seconds(self) -> float:
        return self._clock.wall_seconds()

    def seconds(self) -> float:
        now = self._clock.seconds()
        self._seconds += min(now - self._looked, LONGEST_SECONDS)
        self._looked = now
        return self._seconds

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)
