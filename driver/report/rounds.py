"""What a program takes by a clock, in rounds: in each a control runs right before it.

The clock of a machine that others use too, that gets warm or changes its frequency, drifts by some
percent within minutes, and what it does to one program it does to the next. A control is a program
that never changes: the ratio of the two, round by round, is several times steadier than a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds of a program, and of its control right before; None where nothing can be one."""

    seconds: float
    control: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsTime:
    """What rounds add up to; see `records.SampleTime` of `driver/jobs/nightly`.

    Attributes:
        seconds, low, high: the median, the tenth and the ninetieth percentile.
        control: so that `seconds / control` is the ratio of the two; None without one.
        control_code: the digest of the control; "" without one.
    """

    seconds: float
    low: float
    high: float
    control: float | None = None
    control_code: str = ""

    @property
    def relative(self) -> float:
        """The ratio; the seconds without a control."""
        return self.seconds if self.control is None else self.seconds / self.control


def rounds_time(rounds: Sequence[Round], control_code: str = "") -> RoundsTime:
    """What a program takes, from a few rounds at least.

    The ratio is the mean of the middle half of the logarithms, nearly as steady as the mean of all
    where they are normal, and unmoved by rounds that something disturbed.

    Raises:
        ValueError: of fewer than four rounds there is no middle half.
    """
    if len(rounds) < 4:
        raise ValueError(f"{len(rounds)} rounds")
    seconds = sorted(each.seconds for each in rounds)
    tenth, middle = len(seconds) // 10, median(seconds)
    ratios = sorted(math.log(r.seconds / r.control) for r in rounds if r.control is not None)
    control = None
    if len(ratios) == len(rounds):
        quarter = len(ratios) // 4
        control = middle / math.exp(fmean(ratios[quarter : len(ratios) - quarter]))
    return RoundsTime(
        seconds=middle,
        low=seconds[tenth],
        high=seconds[-1 - tenth],
        control=control,
        control_code="" if control is None else control_code,
    )


def again_seconds(first: RoundsTime, again: RoundsTime) -> float:
    """What the second rounds took, if their control had taken what the first ones' did."""
    if first.control is None or again.control is None:
        return again.seconds
    return again.relative * first.control
