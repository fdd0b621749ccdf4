"""Judges the rows of a night by what its history knows."""

from __future__ import annotations

from tilefarm.measurement import DeviceClock

from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.judging.judged_row import judged
from driver.jobs.nightly.judging.level import MEMORY, WINDOW, level
from driver.jobs.nightly.judging.machine_noise import RECENT, MachineNoise, machine_noise
from driver.jobs.nightly.judging.past import RowPast, comparable
from driver.jobs.nightly.records import Judged, Machine, Row, Sample


class NightJudge:
    """The verdicts of one night. It reads the history, and writes nothing.

    Args:
        history: with the nights before.
        night: the name of the night that is judged.
    """

    def __init__(self, history: History, night: str) -> None:
        self._history = history
        names = [each.name for each in history.nights()]
        self._before = frozenset(names[: names.index(night)])
        self._noise: dict[Machine, MachineNoise] = {}

    def judged(self, sample: Sample, gates: Gates) -> Judged:
        """The verdict of a row that was measured.

        Args:
            sample: of the known schedules, or of the found ones in a row's first night.
            gates: of this row.
        """
        noise = MachineNoise()
        if sample.machine.clock is DeviceClock.SECONDS:
            noise = self._noise_of(sample.machine)
        return judged(sample, self._past(sample.row), noise, gates)

    def _past(self, row: Row, last: int | None = None) -> RowPast:
        """Of a row: all, or the last nights of the history."""
        history, before = self._history, self._before
        samples = history.samples(row=row, last=last)
        verdicts = history.verdicts(row=row, last=last)
        return RowPast(
            samples=[each for each in samples if each.night in before],
            judged=[each for each in verdicts if each.night in before],
            acceptances=history.acceptances(row),
        )

    def _noise_of(self, machine: Machine) -> MachineNoise:
        """Of all rows that were measured on a machine lately, in the nights that are remembered."""
        if machine not in self._noise:
            latest: dict[Row, Sample] = {}
            for sample in self._history.samples(last=RECENT):
                if sample.machine == machine and sample.night in self._before:
                    latest[sample.row] = sample
            self._noise[machine] = machine_noise(
                [
                    level(comparable(self._past(row, MEMORY + WINDOW), sample)).residuals
                    for row, sample in latest.items()
                ]
            )
        return self._noise[machine]
