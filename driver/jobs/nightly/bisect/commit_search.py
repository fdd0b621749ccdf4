"""Which commit changed a time: a search that halves the commits, and knows that clocks are noisy.

Each commit may be the first with the new time; in the beginning each is as likely. A measurement
says how likely its time is with the old level and with the new one, so one between the two says
little, and the next is made where it halves what is left: a probabilistic bisection (Waeber,
Frazier, Henderson 2013, https://doi.org/10.1137/120861898). With exact cycles it is the usual one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from statistics import median
from typing import Final

_SURE: Final = 0.99
"""How likely the commits that are told are, together."""
_TAIL: Final = (1 - _SURE) / 4
"""What is less likely is not looked at."""
_MOST_SAID: Final = math.log(10.0)
"""What one time of a clock may say at most: one of a few is of a disturbed machine."""
_EXACT: Final = 60.0
"""What one number of cycles says."""
_LEAST_AT_ENDS: Final = 5
_MOST_AT_ENDS: Final = 16
"""Times of either end, whose medians are the two levels."""
_WELL_KNOWN: Final = 0.125
"""The error of a level, as a share of the way between the two, that does no harm."""
_MEDIAN_ERROR: Final = 1.25
"""Standard error of a median by that of a mean."""
_MOST_AT_ONE: Final = 20
"""Times of one commit; more of them would say no more."""
_APART: Final = 3.0
"""Standard errors between the two levels; what is less is no change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSearch:
    """What is known of a range of commits, the oldest first: the first is good, the last is bad.

    Attributes:
        count: commits; two or more.
        spread: by which times of one commit differ: one standard deviation as a share of them; 0
            where they are exact.
        costs: what was measured, by the number of the commit, from 0.
        skipped: numbers of commits that cannot be measured.
    """

    count: int
    spread: float
    costs: Mapping[int, Sequence[float]] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()

    def measured(self, at: int, cost: float) -> CommitSearch:
        """With one more time of a commit."""
        return replace(self, costs={**self.costs, at: (*self.costs.get(at, ()), cost)})

    def without(self, at: int) -> CommitSearch:
        """With a commit that cannot be measured."""
        return replace(self, skipped=self.skipped | {at})

    @property
    def levels(self) -> tuple[float, float] | None:
        """What the good end takes, and the bad one; None as long as one is not measured."""
        first, last = (self.costs.get(at) for at in self._ends)
        return (median(first), median(last)) if first and last else None

    @property
    def has_change(self) -> bool:
        """Whether the ends differ, by more than their noise."""
        levels = self.levels
        if levels is None:
            return False
        errors = [self._error(at) for at in self._ends]
        return abs(levels[1] / levels[0] - 1) > _APART * math.hypot(*errors)

    def likely(self) -> list[float]:
        """How likely each commit is the first with the new time; that of the good end is 0."""
        logs = [0.0] * self.count
        for at, costs in self.costs.items():
            if at not in self._ends:
                said = math.fsum(map(self._said, costs))
                logs[: at + 1] = [each + said for each in logs[: at + 1]]
        most = max(logs[1:])
        weights = [0.0, *(math.exp(each - most) for each in logs[1:])]
        total = math.fsum(weights)
        return [weight / total for weight in weights]

    def next(self) -> int | None:
        """The commit to measure next; None where more would say nothing."""
        if self.skipped & {*self._ends}:
            return None
        ends = sorted(self._ends, key=lambda end: len(self.costs.get(end, ())))
        if (end := next(filter(self._is_vague, ends), None)) is not None:
            return end
        if not self.has_change or max(self.likely()) >= _SURE:
            return None
        return self._halving()

    def found(self) -> tuple[int, ...]:
        """The commits one of which is the first with the new time: one, unless some are skipped.

        Empty where there is no change, or nothing is known yet.
        """
        if not self.has_change:
            return ()
        chances = self.likely()
        best_first = sorted(range(1, self.count), key=lambda at: (-chances[at], at))
        sums = accumulate(chances[at] for at in best_first)
        enough = next((n for n, total in enumerate(sums, 1) if total >= _SURE), self.count - 1)
        return tuple(sorted(best_first[:enough]))

    @property
    def _ends(self) -> tuple[int, int]:
        return 0, self.count - 1

    def _said(self, cost: float) -> float:
        """How much more likely a time is with the new level than with the old one: a logarithm."""
        levels = self.levels
        if levels is None:
            return 0.0
        good, bad = levels
        if not self.spread:  # Where several commits have a part of the change, the nearer counts.
            return math.copysign(_EXACT, abs(cost - good) - abs(cost - bad))
        unit = self.spread * (good + bad) / 2
        ratio = ((cost - good) ** 2 - (cost - bad) ** 2) / (2 * unit**2)
        return max(-_MOST_SAID, min(_MOST_SAID, ratio))

    def _error(self, at: int) -> float:
        """By which the median of a commit's times is off, as a share of it."""
        return _MEDIAN_ERROR * self.spread / math.sqrt(len(self.costs[at]))

    def _is_vague(self, end: int) -> bool:
        """Whether more times of an end would tell its level better, and should."""
        times = len(self.costs.get(end, ()))
        levels = self.levels
        if not self.spread or levels is None or not times:
            return times == 0
        if not _LEAST_AT_ENDS <= times < _MOST_AT_ENDS:
            return times < _LEAST_AT_ENDS
        return self._error(end) > _WELL_KNOWN * abs(levels[1] / levels[0] - 1)

    def _halving(self) -> int | None:
        """The commit on either side of whose begin the change is as likely as not."""
        before = list(accumulate(self.likely()))
        most = _MOST_AT_ONE if self.spread else 1
        free = [
            at
            for at in range(1, self.count - 1)
            if at not in self.skipped
            and len(self.costs.get(at, ())) < most
            and _TAIL < before[at] < 1 - _TAIL
        ]
        return min(free, key=lambda at: (abs(before[at] - 0.5), at), default=None)
