"""Whether what a search has found is better than what is known, both measured in one night."""

from __future__ import annotations

from tilefarm.measurement import DeviceClock

from driver.jobs.nightly.judging.set_units import relative
from driver.jobs.nightly.night.measured_run import MeasuredRun


def is_better(found: MeasuredRun, known: MeasuredRun) -> bool:
    """Whether the next night is to compile what was found.

    It has to answer the same, on the same machine. Cycles tell the rest; by a clock it has to be
    faster than nine of ten times of the known program, in each of its own measurements.
    """
    if found.answers.differing or found.answers.digest != known.answers.digest:
        return False
    if found.machine != known.machine:
        return False
    if found.machine.clock is DeviceClock.CYCLES:
        return found.time.cost < known.time.cost
    fastest = min(known.time.low, known.time.again or known.time.low)
    slowest = max(found.time.cost, found.time.again or found.time.cost)
    return relative(slowest, found.time) < relative(fastest, known.time)
