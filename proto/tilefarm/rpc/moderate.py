"""What strangers cause is noted in moderation: their refusals must not fill a disk."""

from __future__ import annotations

from typing import Final

from tilefarm.clock import Clock

AT_ONCE: Final = 100
PER_SECOND: Final = 1.0
"""On the average: 86,400 lines of an audit a day."""


class Moderate:
    """Lets `AT_ONCE` pass, then one each time that another is due; counts the others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left = float(AT_ONCE)
        self._at = clock.seconds()
        self._passed_over = 0

    def passed_over(self) -> int | None:
        """How many were passed over since the last one, if this one passes; None if not."""
        now = self._clock.seconds()
        self._left = min(float(AT_ONCE), self._left + (now - self._at) * PER_SECOND)
        self._at = now
        if self._left < 1:
            self._passed_over += 1
            return None
        self._left -= 1
        count, self._passed_over = self._passed_over, 0
        return count
