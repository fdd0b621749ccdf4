"""The verdict of one row in one night, from the gravest to the least."""

from __future__ import annotations

from tilefarm.measurement import DeviceClock

from driver.jobs.nightly.judging.answers import changed_answer
from driver.jobs.nightly.judging.cycles import by_cycles
from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.judging.level import level
from driver.jobs.nightly.judging.machine_noise import MachineNoise
from driver.jobs.nightly.judging.outcome import Outcome
from driver.jobs.nightly.judging.past import RowPast, comparable, is_same_network
from driver.jobs.nightly.judging.wall_time import by_clock
from driver.jobs.nightly.records import Judged, Row, Sample, Verdict


def judged(tonight: Sample, past: RowPast, noise: MachineNoise, gates: Gates) -> Judged:
    """What a night says of a row that it has measured.

    Args:
        tonight: what it measured with the known schedules.
        past: the nights before.
        noise: of tonight's machine, which matters where a clock tells the times.
        gates: what passes.
    """
    outcome = _outcome(tonight, past, noise, gates)
    return Judged(
        night=tonight.night,
        row=tonight.row,
        verdict=outcome.verdict,
        change=outcome.change,
        against=outcome.against,
        why=outcome.why,
    )


def not_measured(night: str, row: Row, why: str) -> Judged:
    """What a night says of a row that it has not measured.

    Args:
        night: its name.
        row: of the zoo.
        why: in words, for people.
    """
    return Judged(night=night, row=row, verdict=Verdict.NOT_MEASURED, why=why)


def _outcome(tonight: Sample, past: RowPast, noise: MachineNoise, gates: Gates) -> Outcome:
    points = comparable(past, tonight)
    if changed := changed_answer(tonight, points, gates):
        return changed
    alike = [sample for sample in past.samples if is_same_network(sample, tonight)]
    if alike and all(sample.machine != tonight.machine for sample in alike):
        before = alike[-1].machine.name
        what = "its configuration" if before == tonight.machine.name else f"it was {before}"
        why = f"the first night on {tonight.machine.name} as it is now; what changed: {what}"
        return Outcome(Verdict.DEVICE_CHANGED, why, None, alike[-1].night)
    if past.samples and not alike:
        why = "the model or its data has changed: its first night"
        return Outcome(Verdict.INSUFFICIENT_HISTORY, why)
    if tonight.machine.clock is DeviceClock.CYCLES:
        return by_cycles(tonight, points, gates)
    return by_clock(tonight, level(points), noise, gates)
