"""What verdicts by cycles are worth: one percent more is found at once, whatever was adopted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from numpy.random import Generator, default_rng
from tilefarm.digest import Digest
from tilefarm.measurement import DeviceClock

from driver.benchmarks.figures import Figure
from driver.benchmarks.nightly.simulated_nights import SAMPLE
from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.judging.judged_row import judged
from driver.jobs.nightly.judging.machine_noise import MachineNoise
from driver.jobs.nightly.judging.past import RowPast
from driver.jobs.nightly.records import Judged, Pass, Sample, SampleTime, Verdict

_NIGHTS: Final = 12
_ADOPTED: Final = 0.3
"""Of nights that adopt a faster set."""
_SLOWDOWN: Final = 0.01


def cycles_figures(rows: int, seed: int) -> Iterator[Figure]:
    """Of rows that adopt schedules now and then and get slower in their last night."""
    chance = default_rng(seed)
    found = false = 0
    for _ in range(rows):
        alarms, is_found = _row(chance)
        false += alarms
        found += is_found
    yield Figure(
        name="cycles: 1 % more, found at once",
        value=100 * found / rows,
        unit="%",
        goal=100.0,
        more_is_better=True,
    )
    yield Figure(name="cycles: false alarms", value=false, unit="", goal=0.0)


def _row(chance: Generator) -> tuple[int, bool]:
    """False alarms before the last night, and whether that one's slowdown is found."""
    cycles, schedules = int(chance.integers(10_000, 10**9)), 0
    samples, verdicts = list[Sample](), list[Judged]()
    for night in range(_NIGHTS):
        is_last = night == _NIGHTS - 1
        counted = -int(-cycles * (1 + _SLOWDOWN) // 1) if is_last else cycles
        sample = _sample(night, schedules, counted, Pass.KNOWN)
        past = RowPast(samples=tuple(samples), judged=tuple(verdicts))
        verdicts.append(judged(sample, past, MachineNoise(), Gates()))
        samples.append(sample)
        if chance.random() < _ADOPTED:
            cycles, schedules = int(cycles * chance.uniform(0.5, 1.0)) + 1, schedules + 1
            samples.append(_sample(night, schedules, cycles, Pass.FOUND))
    *before, last = verdicts
    return sum(each.verdict.fails for each in before), last.verdict is Verdict.SLOWER


def _sample(night: int, schedules: int, cycles: int, part: Pass) -> Sample:
    return replace(
        SAMPLE,
        night=f"{night:04}",
        part=part,
        schedules=Digest(f"{schedules:064x}"),
        machine=replace(SAMPLE.machine, clock=DeviceClock.CYCLES),
        order=replace(SAMPLE.order, code=Digest(f"{night:064x}")),
        time=SampleTime(cost=cycles, low=cycles, high=cycles, ended=0.0),
    )
