"""What a device did lately, from what it says of its whole life in every heartbeat."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from tilefarm.rpc.tracker_calls import Usage

LATELY_SECONDS: Final = 10.0

MOST_MARKS: Final = 64
"""Heartbeats within that time; a device whose clock stands still has no more than others."""


class UsageRate:
    """One life of a device. What it says is believed as far as it can be."""

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        self._marks: deque[Usage] = deque()

    def hear(self, usage: Usage) -> None:
        """What it has done until now."""
        if not _is_possible(usage):
            return
        marks = self._marks
        if marks and not _is_possible(usage.since(marks[-1])):
            marks.clear()
        marks.append(usage)
        while len(marks) > 2 and (
            len(marks) > MOST_MARKS or usage.up_seconds - marks[1].up_seconds >= LATELY_SECONDS
        ):
            marks.popleft()

    @property
    def usage(self) -> Usage | None:
        """In its life; None if it has said nothing."""
        return self._marks[-1] if self._marks else None

    @property
    def lately(self) -> Usage | None:
        """In the last seconds; None if it has said nothing yet."""
        return self._marks[-1].since(self._marks[0]) if self._marks else None


def _is_possible(usage: Usage) -> bool:
    """Whether a device can have done that."""
    seconds = usage.busy_seconds, usage.up_seconds
    return usage.runs >= 0 and all(math.isfinite(s) and s >= 0 for s in seconds)
