"""The nights of one row, written as what each measured; every night is judged by those before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kit.reports.measured_nights import BEGAN, DAY, Measured
from tilefarm.digest import Digest
from tilefarm.measurement import DeviceClock

from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.judging.judged_row import judged
from driver.jobs.nightly.judging.machine_noise import MachineNoise
from driver.jobs.nightly.judging.past import RowPast
from driver.jobs.nightly.records import Acceptance, Judged, Pass, Sample

SECONDS: Final = DeviceClock.SECONDS
QUIET: Final = MachineNoise(spread=0.002, slower=0.004, faster=0.004, count=1000)
"""Of a machine on which times differ by half a percent at most."""


@dataclass
class RowNights:
    """Takes nights, one after the other. Code is new in each unless it is given."""

    clock: DeviceClock = DeviceClock.CYCLES
    gates: Gates = field(default_factory=Gates)
    samples: list[Sample] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    acceptances: list[Acceptance] = field(default_factory=list)
    nights: int = 0

    def night(
        self,
        cost: float,
        *,
        schedules: str = "A",
        found: tuple[str, float] | None = None,
        again: float | None = None,
        code: str | None = None,
        machine: str = "board0",
        answer: str = "yes",
    ) -> Judged:
        """One more; `again` is as much as `cost` unless given; `found` is another set's cost."""
        self.nights += 1
        name = f"n{self.nights:04}"
        known = self._measured(cost, code or name, machine, answer, again)
        sample = known.sample(name, Digest.of(schedules.encode()), BEGAN + DAY * self.nights)
        past = RowPast(
            samples=tuple(self.samples),
            judged=tuple(self.judged),
            acceptances=tuple(self.acceptances),
        )
        said = judged(sample, past, QUIET, self.gates)
        self.samples.append(sample)
        if found is not None:
            other, cost = found
            better = self._measured(cost, code or name, machine, answer, None, Pass.FOUND)
            self.samples.append(better.sample(name, Digest.of(other.encode())))
        self.judged.append(said)
        return said

    def _measured(
        self,
        cost: float,
        code: str,
        machine: str,
        answer: str,
        again: float | None,
        part: Pass = Pass.KNOWN,
    ) -> Measured:
        if self.clock is SECONDS and again is None:
            again = cost
        return Measured(
            cost=cost,
            clock=self.clock,
            part=part,
            machine=machine,
            code=code,
            answer=answer,
            again=again,
            layers=False,
        )

    def those(self, costs: Sequence[float], schedules: str = "A") -> list[str]:
        """The verdicts of so many nights."""
        return [self.night(cost, schedules=schedules).verdict.value for cost in costs]

    def accept(self, night: str) -> None:
        """Somebody does, the next morning."""
        row = self.samples[0].row
        self.acceptances.append(Acceptance(row=row, night=night, who="kim", when=0.0))
