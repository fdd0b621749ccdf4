"""What came of every candidate: told to records, tuner, log and listener, or taken back there."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from tilefarm.measurement import Trial
from tilefarm.watch.log import Log

from driver.search.candidate import Candidate
from driver.search.moves import JobId, Outcome
from driver.search.scores import Scores
from driver.search.terms import Records, SearchSettings
from driver.search.tuner_thread import TunerThread
from driver.terminal.events import TrialEnded


class Results:
    """Tells how candidates ended, and remembers what it told of those that are in doubt.

    Args:
        tuner: learns from every end.
        records: keep every end.
        scores: the best and the default so far.
        settings: of the search.
        told: trials that the tuner knew before.
        budget: trials at most, those included.
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
        told: int,
        budget: int,
        listen: Callable[[TrialEnded], None],
        now: Callable[[], float],
        log: Log | None,
    ) -> None:
        self._tuner = tuner
        self._records = records
        self._scores = scores
        self._settings = settings
        self._earlier = told
        self._budget = budget
        self._listen = listen
        self._now = now
        self._log = log
        self._unconfirmed: dict[JobId, tuple[Candidate, Trial]] = {}
        self.trials = 0
        """How many candidates have ended in this search, without those taken back."""

    def tell(
        self,
        number: JobId,
        candidate: Candidate,
        outcome: Outcome,
        story: Sequence[str],
        *,
        unconfirmed: bool,
    ) -> None:
        """A candidate has ended; its device may say yet that it was wrong."""
        trial = candidate.trial(outcome, tuple(story), self._settings.proposer)
        self._records.insert(trial, run=self._settings.run_id)
        if unconfirmed:
            self._unconfirmed[number] = candidate, trial
        name = candidate.task.name
        self._tuner.tell(name, trial)
        self.trials += 1
        self._write(number, candidate, trial, story)
        if trial.cycles is not None:
            self._scores.add(name, number, trial.cycles, is_default=candidate.is_default)
        self._listen(
            TrialEnded(
                number=self._earlier + self.trials,
                total=self._budget,
                workload=name,
                status=trial.status.value,
                cycles=trial.cycles,
                best_cycles=self._scores.best(name),
                default_cycles=self._scores.default(name),
                device=trial.device,
                why=trial.why,
                seconds=self._now(),
            )
        )

    def take_back(self, number: JobId, why: str) -> Candidate:
        """What was told of a candidate is worth nothing; it has not ended."""
        candidate, trial = self._unconfirmed.pop(number)
        self._records.doubt(trial, why)
        self._tuner.doubt(candidate.task.name, trial)
        self._scores.remove(candidate.task.name, number)
        self.trials -= 1
        if self._log is not None:
            self._log("suspect", run=self._settings.run_id, job=number, device=trial.device)
        return candidate

    def drop(self, candidate: Candidate) -> None:
        """Nobody will measure a candidate."""
        self._tuner.tell(candidate.task.name, candidate.cancelled())

    def confirm_but(self, doubted: Container[JobId]) -> None:
        """Only these are still in doubt; what was told of all others stays."""
        self._unconfirmed = {n: told for n, told in self._unconfirmed.items() if n in doubted}

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
                story=" > ".join(story),
            )
