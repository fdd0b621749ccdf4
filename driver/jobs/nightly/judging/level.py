"""What a row takes by a clock, from its nights so far: its level, and how far nights were off it.

A night that looked slower and was not so the next time was noise: it counts. What was slower twice
does not, until somebody accepts it, and what was faster twice is the new level. What the very same
code has given is the machine's doing, and counts in any case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from driver.jobs.nightly.judging.past import Point
from driver.jobs.nightly.records import Sample, Verdict

WINDOW: Final = 10
"""Nights whose median is the level."""
LEAST: Final = 5
"""Nights without which there is no verdict: the median of fewer follows a single one."""
MEMORY: Final = 365
"""Nights whose residuals are remembered: enough to have met what comes once in two months."""

_SUSPICIOUS: Final = frozenset({Verdict.SLOWER, Verdict.FASTER, Verdict.UNSTABLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The times of a row, as natural logarithms.

    Attributes:
        window: the nights that tonight is compared with, at most WINDOW; the oldest first.
        times: what they took.
        residuals: of the nights of this row that count, how far each was from the level then.
        looks: 1 if the nights right before tonight were slower, or looked so, -1 if faster; else 0.
        nights: all on this machine that answered rightly.
    """

    window: tuple[Point, ...]
    times: tuple[float, ...]
    residuals: tuple[float, ...]
    looks: int
    nights: int

    @property
    def middle(self) -> float:
        """The median of the window."""
        return median(self.times)

    @property
    def scaled_share(self) -> float:
        """How many of the window were measured with other schedules, as a share."""
        return sum(point.is_scaled for point in self.window) / len(self.window)


def level(points: Sequence[Point]) -> Level:
    """Where a row stands after its nights, the oldest first."""
    walk = LevelWalk()
    for point in points:
        walk.take(point)
    return walk.level()


def with_same_program(tonight: Sample, window: Sequence[Point]) -> Point | None:
    """The last night of these with tonight's code and schedules; None where some are new."""
    program = tonight.order.code, tonight.schedules
    return next((p for p in reversed(window) if (p.order.code, p.schedules) == program), None)


class LevelWalk:
    """Goes through the nights, the oldest first.

    Attributes:
        counted: the nights of the level that is now.
        pending: those after them that look changed, in the same way.
    """

    def __init__(self) -> None:
        self.counted: list[Point] = []
        self.pending: list[Point] = []
        self.residuals: list[float] = []
        self.nights = 0

    def copied(self) -> LevelWalk:
        """Another one that stands where this one does."""
        other = LevelWalk()
        other.counted, other.pending = [*self.counted], [*self.pending]
        other.residuals, other.nights = [*self.residuals], self.nights
        return other

    def level(self) -> Level:
        """Where the row stands now."""
        window = self.counted[-WINDOW:]
        return Level(
            window=tuple(window),
            times=tuple(map(_time, window)),
            residuals=tuple(self.residuals[-MEMORY:]),
            looks=_looks(self.pending[-1]) if self.pending else 0,
            nights=self.nights,
        )

    def take(self, point: Point) -> None:
        """One night more."""
        if point.verdict is Verdict.CHANGED_ANSWER and not point.is_accepted:
            return
        self.nights += 1
        looks = 0 if self._is_the_machine(point) else _looks(point)
        if self.pending and looks != _looks(self.pending[-1]):
            self._come_to_nothing()
        if not looks:
            self._count(point)
            return
        self.pending.append(point)
        if point.verdict is Verdict.FASTER or point.is_accepted:
            self.counted, self.pending = self.pending, []

    def _is_the_machine(self, point: Point) -> bool:
        """Whether the same program took another time in a night that counts."""
        program = point.order.code, point.schedules
        return any(program == (p.order.code, p.schedules) for p in self.counted[-WINDOW:])

    def _come_to_nothing(self) -> None:
        """A look that nothing confirmed is noise; a slowdown that is gone was none."""
        if all(point.verdict is Verdict.UNSTABLE for point in self.pending):
            for point in self.pending:
                self._count(point)
        self.pending = []

    def _count(self, point: Point) -> None:
        before = [_time(each) for each in self.counted[-WINDOW:]]
        self.counted.append(point)
        if len(before) >= LEAST:
            self.residuals.append(_time(point) - median(before))
        elif len(self.counted) == LEAST and not self.residuals:
            first = [*before, _time(point)]
            # Of the few that the median itself is made of: by so much they are nearer to it.
            wider = math.sqrt(LEAST / (LEAST - 1))
            self.residuals += [wider * (time - median(first)) for time in first]


def _looks(point: Point) -> int:
    """1 for a night that was slower, or looked so; -1 for a faster one; else 0."""
    if point.verdict not in _SUSPICIOUS or not point.change:
        return 0
    return 1 if point.change > 0 else -1


def _time(point: Point) -> float:
    return math.log(point.cost)
