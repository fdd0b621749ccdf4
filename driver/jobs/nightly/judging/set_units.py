"""Times of one set of schedules in units of another: a night that adopts a set measures both.

Without this, every adoption would begin a history anew, and a slowdown in the same night would
hide behind it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tilefarm.digest import Digest

from driver.jobs.nightly.records import Sample, SampleTime


def relative(cost: float, time: SampleTime) -> float:
    """A cost of a sample, over that of its control where it has one."""
    return cost if time.control is None else cost / time.control


def fair_cost(sample: Sample) -> float:
    """What a measurement is taken for later, over its control.

    The second one where there is one: it was made because the first one looked remarkable, so the
    first is biased, and the second is not.
    """
    again = sample.time.again
    return relative(sample.time.cost if again is None else again, sample.time)


def units(samples: Sequence[Sample], schedules: Digest) -> Mapping[Digest, Fraction]:
    """By what to multiply the times of each set, to have them as times of `schedules`.

    Ratios are exact, so that those of cycles are.

    Args:
        samples: of one row on one machine, the oldest first.
        schedules: the set whose units are asked for.
    """
    together = defaultdict[str, list[Sample]](list)
    for sample in samples:
        together[sample.night].append(sample)
    pairs = [
        (one, other)
        for night in reversed(together.values())  # the latest ratio of two sets counts
        for one in night
        for other in night
        if one.schedules != other.schedules
    ]
    found = {schedules: Fraction(1)}
    waiting = [schedules]
    while waiting:
        known = waiting.pop(0)
        for one, other in pairs:
            if one.schedules == known and other.schedules not in found:
                ratio = Fraction(fair_cost(one)) / Fraction(fair_cost(other))
                found[other.schedules] = found[known] * ratio
                waiting.append(other.schedules)
    return found
