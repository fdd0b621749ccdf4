"""What a row's process has left, as the night's samples, verdict and adoption in the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilefarm.digest import Digest

from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.judging.judged_row import not_measured
from driver.jobs.nightly.judging.night_judge import NightJudge
from driver.jobs.nightly.night.adoption import is_better
from driver.jobs.nightly.night.kernel_evidence import keep_evidence
from driver.jobs.nightly.night.measured_run import MeasuredRun, measured_run
from driver.jobs.nightly.night.row_folder import RowFolder
from driver.jobs.nightly.records import Adoption, Judged, Order, Pass, Row, Sample
from driver.jobs.nightly.zoo_file import ZooRow

_SEARCH = "the search of the night"
"""Who adopts what it has found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What is in the history now; `notes` say of which kernels it has no code, and why."""

    judged: Judged
    samples: tuple[Sample, ...] = ()
    notes: tuple[str, ...] = ()


class Recorder:
    """Writes the rows of one night; what is there already stays as it is.

    Args:
        history: that the night belongs to.
        night: its name.
        version, commit: of the code, see `Order`.
    """

    def __init__(self, history: History, night: str, *, version: str, commit: str) -> None:
        self._history = history
        self._night = night
        self._version, self._commit = version, commit
        self._judge = NightJudge(history, night)

    def adopted(self, row: Row) -> Adoption | None:
        """The schedules that this night compiles: of the last night before it that adopted any."""
        before = [each for each in self._history.adoptions(row) if each.night != self._night]
        return before[-1] if before else None

    def without(self, row: Row, why: str) -> Recorded:
        """Keeps that a row was not measured."""
        judged = not_measured(self._night, row, why)
        self._history.judge(judged)
        return Recorded(judged=judged)

    def keep(self, row: ZooRow, folder: RowFolder, why: str) -> Recorded:
        """Keeps what is in the row's folder.

        Args:
            why: nothing is there, where that is so.

        Raises:
            InfraError: what is there cannot be understood.
        """
        known, found = measured_run(folder.out), measured_run(folder.found)
        if found is not None and known is not None and not is_better(found, known):
            found = None
        if self.adopted(row.row) is None:
            # Nothing was known: the best that there is now is the first night's.
            samples = judged_by = self._samples(row, Pass.FOUND, found or known)
        else:
            judged_by = self._samples(row, Pass.KNOWN, known)
            samples = (*judged_by, *self._samples(row, Pass.FOUND, found))
        self._adopt(row.row, samples)
        notes = keep_evidence(self._history, samples, row.words)
        if not judged_by:
            return replace(self.without(row.row, why), samples=samples, notes=notes)
        judged = self._judge.judged(judged_by[0], row.gates)
        self._history.judge(judged)
        return Recorded(judged=judged, samples=samples, notes=notes)

    def _samples(self, row: ZooRow, part: Pass, run: MeasuredRun | None) -> tuple[Sample, ...]:
        """The sample of a pass, kept; none where nothing was measured."""
        if run is None:
            return ()
        sample = Sample(
            night=self._night,
            row=row.row,
            part=part,
            order=Order(
                version=self._version,
                commit=self._commit,
                code=run.code,
                model=run.model,
                data=_data_digest(row),
            ),
            machine=run.machine,
            schedules=self._history.keep(run.schedules),
            time=run.time,
            answers=run.answers,
        )
        self._history.add(sample)
        return (sample,)

    def _adopt(self, row: Row, samples: Sequence[Sample]) -> None:
        """What was found is what the next night compiles, if it is right."""
        for sample in samples:
            if sample.part is Pass.FOUND and not sample.answers.differing:
                self._history.adopt(
                    Adoption(
                        row=row,
                        night=self._night,
                        schedules=sample.schedules,
                        who=_SEARCH,
                        when=sample.time.ended,
                    )
                )


def _data_digest(row: ZooRow) -> Digest:
    """Of the data that the row is calibrated and scored with, and of what is done with them."""
    files = [Digest.of_file(path).hex for path, _ in row.files if str(path) != row.model]
    return Digest.of_json([row.settings, files])
