"""Verdicts by a clock: tonight's median against the last ten nights', in units of their spread.

Slower is what was so in both of tonight's measurements and in two nights in a row, by more than
noise on this machine gives. A compiler that has not changed cannot have made anything slower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from tilefarm.plural import plural

from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.judging.level import LEAST, WINDOW, Level, with_same_program
from driver.jobs.nightly.judging.machine_noise import (
    EFFICIENCY,
    RECENT,
    MachineNoise,
    spread,
    student,
    tail,
)
from driver.jobs.nightly.judging.outcome import Outcome, percent
from driver.jobs.nightly.judging.set_units import relative
from driver.jobs.nightly.records import Sample, Verdict

DEVIATIONS: Final = 3.5
"""That a night must be off: normal noise is so in one of 4000, and noise that drifts slowly is so
for two nights in a row nearly as often as for one."""
_LEAST_SPREAD: Final = 0.0005
"""A median over regions of a millisecond is not better known than that, whatever few nights say."""
_MEDIAN_VARIANCE: Final = math.pi / 2
"""Of a median of normal values, times their number, in units of their variance."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far off the level tonight must be, as shares, to look changed."""

    slower: float
    faster: float

    def side(self, off: float) -> int:
        """1 for slower, -1 for faster, 0 for what is within."""
        return (off > self.slower) - (off < -self.faster)


def bounds(known: Level, noise: MachineNoise, gates: Gates) -> Bounds:
    """What is beyond noise, for a row with these nights on a machine with this noise."""
    own = sorted(known.residuals)
    deviation = max(spread(known.residuals[-RECENT:]), noise.spread, _LEAST_SPREAD)
    freedom = EFFICIENCY * max(noise.count, len(own))
    # Tonight is off by its own noise, by that of the level, and by that of the ratio of two sets;
    # residuals know of the first two, with a whole window.
    ratio = 2 * known.scaled_share**2
    variance = (1 + _MEDIAN_VARIANCE / len(known.window) + ratio) / (1 + _MEDIAN_VARIANCE / WINDOW)
    usual = max(gates.seconds, student(DEVIATIONS, freedom) * math.sqrt(variance) * deviation)
    # A tail is known from a few nights: it may be longer by what nights differ anyway.
    slower = max(noise.slower, tail(own)) + deviation
    faster = max(noise.faster, tail([-each for each in reversed(own)])) + deviation
    return Bounds(slower=max(usual, slower), faster=max(usual, faster))


def looks_changed(tonight: Sample, known: Level, noise: MachineNoise, gates: Gates) -> bool:
    """Whether it is to be measured again at once, because the first time looks changed."""
    if known.nights < LEAST:
        return False
    first = relative(tonight.time.cost, tonight.time)
    return _side(first, known, bounds(known, noise, gates)) != 0


def by_clock(tonight: Sample, known: Level, noise: MachineNoise, gates: Gates) -> Outcome:
    """The verdict of a row whose machine has a clock."""
    if known.nights < LEAST:
        lacking = plural(LEAST - known.nights, "night")
        return Outcome(
            Verdict.INSUFFICIENT_HISTORY, f"{lacking} lacking of {LEAST} on this machine"
        )
    limits = bounds(known, noise, gates)
    first, again = relative(tonight.time.cost, tonight.time), tonight.time.again
    again = None if again is None else relative(again, tonight.time)
    off = math.log(first if again is None else again) - known.middle
    change, against = math.expm1(off), known.window[-1].night
    side = _side(first, known, limits)
    if not side or (again is not None and _side(again, known, limits) != side):
        return Outcome(Verdict.UNCHANGED, "", change, against)
    beyond = limits.slower if side > 0 else limits.faster
    words = (
        f"{percent(change)} {'slower' if side > 0 else 'faster'} than the median of"
        f" {plural(len(known.window), 'night')}; noise here is within {percent(beyond)}"
    )
    if again is None:
        return Outcome(Verdict.UNSTABLE, f"{words}; not measured again", change, against)
    same = with_same_program(tonight, known.window)
    if same is not None:
        words += f"; the code is that of night {same.night}, so it is the machine"
        return Outcome(Verdict.UNSTABLE, words, change, against)
    if known.looks != side:
        return Outcome(Verdict.UNSTABLE, f"{words}; the next night decides", change, against)
    verdict = Verdict.SLOWER if side > 0 else Verdict.FASTER
    return Outcome(verdict, f"{words}; twice in a row", change, against)


def _side(cost: float, known: Level, limits: Bounds) -> int:
    return limits.side(math.log(cost) - known.middle)
