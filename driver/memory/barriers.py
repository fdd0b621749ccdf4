"""How much runs at a time, where only so many signals may be live at once."""

from __future__ import annotations

from bisect import bisect_right


class Barriers:
    """Who holds one from when to when; 0 of them are as many as it takes."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._ticks = [0]
        self._held = [0]  # from each of those ticks to the next

    def earliest(self, begin: int, ticks: int) -> int:
        """From when on, no sooner than `begin`, one is free for so long."""
        if not self._count:
            return begin
        at = bisect_right(self._ticks, begin) - 1
        while at < len(self._ticks) and self._ticks[at] < begin + ticks:
            if self._held[at] >= self._count:
                begin = self._ticks[at + 1]  # the last row has all free
            at += 1
        return begin

    def hold(self, begin: int, end: int) -> None:
        """One is held."""
        if not self._count:
            return
        first, last = self._cut(begin), self._cut(end)
        for at in range(first, last):
            self._held[at] += 1

    def _cut(self, tick: int) -> int:
        """The number of the row that begins at a tick."""
        at = bisect_right(self._ticks, tick) - 1
        if self._ticks[at] == tick:
            return at
        self._ticks.insert(at + 1, tick)
        self._held.insert(at + 1, self._held[at])
        return at + 1
