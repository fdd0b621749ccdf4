"""A zoo's nights with given noise, judged by the rules of `driver/jobs/nightly/judging`.

Every night has other code, so that every one might have made something slower, and nothing did.
From time to time a row gets slower for two nights in a world of its own: whether that is found.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from tilefarm.digest import Digest
from tilefarm.measurement import DeviceClock

from driver.benchmarks.nightly.noise_models import Logs
from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.judging.level import LevelWalk
from driver.jobs.nightly.judging.machine_noise import MachineNoise, machine_noise
from driver.jobs.nightly.judging.outcome import Outcome
from driver.jobs.nightly.judging.past import Point
from driver.jobs.nightly.judging.set_units import fair_cost
from driver.jobs.nightly.judging.wall_time import by_clock, looks_changed
from driver.jobs.nightly.records import (
    Answers,
    Machine,
    Order,
    Pass,
    Row,
    Sample,
    SampleTime,
    Verdict,
)

WARM: Final = 30
"""Nights before slowdowns are tried: a month of history."""
_EVERY: Final = 10
"""Nights from one try to the next."""
_NOTHING: Final = Digest.of(b"")
_GATES: Final = Gates()
_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNights:
    """What became of them.

    Attributes:
        nights, rows: how many.
        slower, faster: rows that were called so, each time that they had not been the night before.
        unstable: that were said to look changed.
        tried, found: slowdowns, and those that were called so within two nights.
    """

    nights: int
    rows: int
    slower: int
    faster: int
    unstable: int
    tried: int
    found: int

    @property
    def false_alarms(self) -> float:
        """In 200 nights of 20 rows."""
        return self.slower * (200 * 20) / (self.nights * self.rows)


def simulate(noise: Logs, slowdown: float, *, device_changes: int = 0) -> SimulatedNights:
    """Plays these nights.

    Args:
        noise: [nights, rows, 2]: see `noise_models`.
        slowdown: of a try, as a share.
        device_changes: so often the machine is another one, and all begins anew.
    """
    nights, rows, _ = noise.shape
    life = nights // (device_changes + 1)
    counts = Counter[Verdict]()
    tried = found = 0
    for night in range(nights):
        if night % life == 0:
            walks = [LevelWalk() for _ in range(rows)]
            said = [Verdict.UNCHANGED] * rows
        levels = [walk.level() for walk in walks]
        machine = machine_noise([level.residuals for level in levels])
        is_tried = night % life >= WARM and night % _EVERY == 0 and (night + 1) % life > 0
        for row, walk in enumerate(walks):
            if is_tried and night + 1 < nights:
                tried += 1
                two = noise[night : night + 2, row] + math.log1p(slowdown)
                found += _is_found(walk, machine, two, night)
            verdict = _judged(walk, machine, noise[night, row], night).verdict
            if verdict is not said[row]:
                counts[verdict] += 1
            said[row] = verdict
    return SimulatedNights(
        nights=nights,
        rows=rows,
        slower=counts[Verdict.SLOWER],
        faster=counts[Verdict.FASTER],
        unstable=counts[Verdict.UNSTABLE],
        tried=tried,
        found=found,
    )


def _is_found(walk: LevelWalk, machine: MachineNoise, noise: Logs, night: int) -> bool:
    """Whether a row with that noise is called slower in the first night or the second one."""
    other = walk.copied()
    return any(
        _judged(other, machine, each, night + after).verdict is Verdict.SLOWER
        for after, each in enumerate(noise)
    )


def _judged(walk: LevelWalk, machine: MachineNoise, noise: Logs, night: int) -> Outcome:
    """The verdict of a row in a night, which the row's level knows afterwards."""
    first, again = (_SECONDS * math.exp(each) for each in noise)
    order = replace(SAMPLE.order, code=Digest(f"{night:064x}"))
    sample = replace(SAMPLE, order=order, time=_time(first))
    level = walk.level()
    if looks_changed(sample, level, machine, _GATES):
        sample = replace(sample, time=_time(first, again))
    outcome = by_clock(sample, level, machine, _GATES)
    walk.take(
        Point(
            night=str(night),
            cost=Fraction(fair_cost(sample)),
            schedules=_NOTHING,
            is_scaled=False,
            order=order,
            answers=sample.answers,
            verdict=outcome.verdict,
            change=outcome.change,
        )
    )
    return outcome


def _time(cost: float, again: float | None = None) -> SampleTime:
    return SampleTime(cost=cost, low=cost, high=cost, again=again, ended=0.0)


SAMPLE: Final = Sample(
    night="",
    row=Row("", ""),
    part=Pass.KNOWN,
    order=Order(version="", commit="", code=_NOTHING, model=_NOTHING, data=_NOTHING),
    machine=Machine(name="", target=_NOTHING, configuration=_NOTHING, clock=DeviceClock.SECONDS),
    schedules=_NOTHING,
    time=_time(_SECONDS),
    answers=Answers(digest=_NOTHING),
)
