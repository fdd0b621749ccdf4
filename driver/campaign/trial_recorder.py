"""Tells what came of every candidate: to records, tuner, log and listener."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilefarm.measurement import Trial
from tilefarm.watch.log import Log

from driver.campaign.candidate import Candidate
from driver.campaign.events import JobId, Outcome
from driver.campaign.interfaces import Records, SearchSettings
from driver.campaign.scores import Scores
from driver.campaign.tuner_thread import TunerThread
from driver.run_events import TrialEnded
from tuner.trial_store import TrialPosition


class TrialRecorder:
    """Tells how candidates ended.

    Args:
        tuner: learns from every end.
        records: keep every end.
        scores: the best and the default so far.
        settings: of the search.
        listen: hears of every end.
        now: seconds since the command's begin.
        log: gets the story of every trial.
    """

    def __init__(
        self,
        *,
        tuner: TunerThread,
        records: Records,
        scores: Scores,
        settings: SearchSettings,
        listen: Callable[[TrialEnded], None],
        now: Callable[[], float],
        log: Log | None,
    ) -> None:
        self._tuner = tuner
        self._records = records
        self._scores = scores
        self._settings = settings
        self._listen = listen
        self._now = now
        self._log = log
        self.trials = 0
        """How many candidates have ended in this search."""

    def tell(
        self, number: JobId, candidate: Candidate, outcome: Outcome, story: Sequence[str]
    ) -> None:
        """A candidate has ended."""
        settings = self._settings
        trial = candidate.trial(outcome, tuple(story), settings.proposer)
        place = TrialPosition(settings.search, number)
        self._records.insert(trial, run=settings.run_id, place=place)
        name = candidate.task.name
        self._tuner.tell(number, trial)
        self.trials += 1
        self._write(number, candidate, trial, story)
        self._scores.add(name, trial, is_default=candidate.is_default)
        best, default = self._scores.best(name), self._scores.default(name)
        self._listen(
            TrialEnded(
                number=self._tuner.known + self.trials,
                total=self._tuner.budget,
                workload=name,
                status=trial.status.value,
                cycles=trial.cycles,
                best_cycles=best.cycles if best else None,
                default_cycles=default.cycles if default else None,
                kernel_seconds=trial.cost_seconds,
                best_seconds=best.cost_seconds if best else None,
                default_seconds=default.cost_seconds if default else None,
                device=trial.device,
                why=trial.why,
                seconds=self._now(),
            )
        )

    def _write(
        self, number: JobId, candidate: Candidate, trial: Trial, story: Sequence[str]
    ) -> None:
        if self._log is not None:
            self._log(
                "trial",
                run=self._settings.run_id,
                candidate=candidate.name,
                job=number,
                workload=trial.workload.short,
                artifact=trial.artifact.short if trial.artifact else "-",
                device=trial.device or "-",
                status=trial.status.value,
                cycles=trial.cycles or "-",
                kernel_seconds=trial.cost_seconds or "-",
                story=" > ".join(story),
            )
