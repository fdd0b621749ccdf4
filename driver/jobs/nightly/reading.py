"""A history as pages and outputs show it: the last nights of each row, and why they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.history.kernels import kept_kernels
from driver.jobs.nightly.records import ChosenSchedule, Judged, Pass, Row, Sample
from driver.jobs.nightly.why import Evidence, Explanation, Measured, commits_between, explained
from driver.jobs.nightly.zoo_history import LAYER_NIGHTS, RowHistory, ZooHistory

NIGHTS: Final = 366
_EXPLAINED: Final = 10
"""Changes of a row that are explained: the last ones."""

Steps = Callable[[Sequence[Sample]], tuple[str, ...]]
"""The nights in which the times of a row have changed for good."""


def no_steps(_: Sequence[Sample]) -> tuple[str, ...]:
    """Nothing is looked for."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryReader:
    """Reads a zoo.

    Attributes:
        checkout: of the code that was measured, to name its commits; None without one.
        steps: finds those of a row.
        nights: so many, the last ones.
    """

    history: History
    checkout: Path | None = None
    steps: Steps = no_steps
    nights: int = NIGHTS
    _sets: dict[str, Mapping[str, ChosenSchedule]] = field(default_factory=dict)

    def zoo(self, rows: Sequence[Row] | None = None) -> ZooHistory:
        """What is known of these rows, in this order; of all where none are named."""
        return ZooHistory(
            zoo=self.history.zoo,
            nights=tuple(self.history.nights()[-self.nights :]),
            rows=tuple(map(self._row, rows or self.history.rows())),
        )

    def _row(self, row: Row) -> RowHistory:
        recent = self.history.samples(row=row, last=min(self.nights, LAYER_NIGHTS), layers=True)
        samples = self.history.samples(row=row, last=self.nights)
        samples[len(samples) - len(recent) :] = recent
        judged = self.history.verdicts(row=row, last=self.nights)
        changed = [each for each in judged if not each.is_quiet][-_EXPLAINED:]
        reasons = {each.night: self.explanation(each) for each in changed}
        adopted = self.history.adopted(row)
        return RowHistory(
            row=row,
            samples=tuple(samples),
            judged=tuple(judged),
            steps=self.steps(samples),
            schedules=self.history.schedules(adopted.schedules) if adopted else (),
            reasons=reasons,
        )

    def explanation(self, judged: Judged) -> Explanation:
        """Why a night differs from the one that it was compared with; empty if nothing is known."""
        now = self._sample(judged.row, judged.night)
        before = now and self._sample(judged.row, judged.against, now)
        if now is None or before is None:
            return Explanation()
        commits: tuple[str, ...] = ()
        if self.checkout is not None:
            commits = commits_between(self.checkout, before.order.commit, now.order.commit)
        return explained(self._measured(before), self._measured(now), commits)

    def _sample(self, row: Row, night: str, like: Sample | None = None) -> Sample | None:
        """That of a night: of another one's schedules if there is one, else of the known ones."""
        of_night = self.history.samples(row=row, night=night, layers=True)
        if like is not None:
            same = [sample for sample in of_night if sample.schedules == like.schedules]
            of_night = same or of_night
        known = [sample for sample in of_night if sample.part is Pass.KNOWN]
        return next(iter(known or of_night), None)

    def _measured(self, sample: Sample) -> Measured:
        schedules = self._schedules(sample)
        kernels = kept_kernels(
            self.history, sample.night, sample.machine.target, schedules.values()
        )
        evidence = {
            chosen.workload.name: Evidence.read(content) for chosen, content in kernels.items()
        }
        return Measured(sample=sample, schedules=schedules, evidence=evidence)

    def _schedules(self, sample: Sample) -> Mapping[str, ChosenSchedule]:
        """Of each workload by name; a set is read once."""
        key = sample.schedules.hex
        if key not in self._sets:
            chosen = self.history.schedules(sample.schedules)
            self._sets[key] = {each.workload.name: each for each in chosen}
        return self._sets[key]
