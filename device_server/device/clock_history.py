"""How long the known kernel took so far by a host's clock, and whether it now takes another time.

Neighbours can only add to a time: where something else runs, a region is thrown away or is longer.
So the shortest region is what the board itself takes, and is compared. What is left is the noise of
memory and interrupts, which the kernel's own spread shows.
"""

from __future__ import annotations

import statistics
from collections import deque
from typing import Final

from tilefarm.measurement import TIME_TOLERANCE, WallTime

MOST_TIMES: Final = 16
"""That are remembered; an hour of searching has more."""


class ClockHistory:
    """The times of one device, the first of which its self-test took."""

    def __init__(self, first: WallTime) -> None:
        self._times = deque([first], maxlen=MOST_TIMES)
        self.shortest = first
        """What other times are compared with: the pace that the device has."""

    @property
    def tolerance(self) -> float:
        """How far a time may be from the shortest one, relative to it."""
        return max(TIME_TOLERANCE, statistics.median(time.spread for time in self._times))

    def change(self, time: WallTime) -> float:
        """How much longer (or, below 0, shorter) than ever, relatively; 0 within the noise."""
        change = time.minimum_seconds / self.shortest.minimum_seconds - 1
        return change if abs(change) > self.tolerance else 0.0

    def keep(self, time: WallTime) -> None:
        """Remember a time within the noise."""
        self._times.append(time)
        self.shortest = min(self.shortest, time, key=lambda each: each.minimum_seconds)

    def begin_anew(self, time: WallTime) -> None:
        """Forget all others: they were of a device at another pace."""
        self._times.clear()
        self._times.append(time)
        self.shortest = time
