"""How often a line may be written on account of others: they must not fill a disk."""

from __future__ import annotations

from typing import Final

from tilefarm.clock import Clock

AT_ONCE: Final = 100
PER_SECOND: Final = 1.0
"""On the average: 86,400 lines of an audit a day."""


class RateLimit:
    """Lets so many pass at once, then one each time that another is due; counts the others."""

    def __init__(
        self, clock: Clock, *, at_once: int = AT_ONCE, per_second: float = PER_SECOND
    ) -> None:
        self._clock = clock
        self._at_once = float(at_once)
        self._per_second = per_second
        self._left = self._at_once
        self._at = clock.seconds()
        self._passed_over = 0

    def passed_over(self) -> int | None:
        """How many were passed over since the last one, if this one passes; None if not."""
        now = self._clock.seconds()
        self._left = min(self._at_once, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            self._passed_over += 1
            return None
        self._left -= 1
        count, self._passed_over = self._passed_over, 0
        return count
