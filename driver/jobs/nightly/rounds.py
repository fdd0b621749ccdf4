"""What a program takes by a clock, in rounds: in each a control runs right before it.

The clock of a machine that others use too, that gets warm or changes its frequency, drifts by some
percent within minutes, and what it does to one program it does to the next. A control is a program
that never changes: the ratio of the two, round by round, is several times steadier than a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles
from typing import Final

ROUNDS: Final = 20
"""The noise of a ratio falls with their square root; so many take a few seconds."""


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds of a program, and of its control right before."""

    seconds: float
    control: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsTime:
    """What rounds add up to; see `records.SampleTime`.

    Attributes:
        seconds, low, high: the median, the tenth and the ninetieth percentile.
        control: so that `seconds / control` is the ratio of the two.
    """

    seconds: float
    low: float
    high: float
    control: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.control


def rounds_time(rounds: Sequence[Round]) -> RoundsTime:
    """What a program takes, from a few rounds at least.

    The ratio is the mean of the middle half of the logarithms, nearly as steady as the mean of all
    where they are normal, and unmoved by rounds that something disturbed.

    Raises:
        ValueError: of fewer than four rounds there is no middle half.
    """
    if len(rounds) < 4:
        raise ValueError(f"{len(rounds)} rounds")
    seconds = [each.seconds for each in rounds]
    tenths = quantiles(seconds, n=10, method="inclusive")
    ratios = sorted(math.log(each.seconds / each.control) for each in rounds)
    quarter = len(ratios) // 4
    ratio = math.exp(fmean(ratios[quarter : len(ratios) - quarter]))
    middle = median(seconds)
    return RoundsTime(
        seconds=middle,
        low=min(middle, tenths[0]),  # equal ones are interpolated to their last digit
        high=max(middle, tenths[-1]),
        control=middle / ratio,
    )
