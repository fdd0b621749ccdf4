"""What came of every candidate: told to records, tuner, log and listener, or taken back there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilefarm.measurement import Trial
from tilefarm.watch.log import Log

from driver.search.candidate import Candidate
from driver.search.moves import JobId, Outcome
from driver.search.scores import Scores
from driver.search.terms import Records, SearchSettings
from driver.search.tuner_thread import TunerThread
from driver.terminal.events import TrialEnded
from tuner.store import Voucher


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
        self._unconfirmed: dict[JobId, tuple[Candidate, Trial, Voucher]] = {}
        self._inherited: set[JobId] = set()
        self.trials = 0
        """How many candidates have ended in this search, without those taken back."""

    def inherit(self, number: JobId, candidate: Candidate, trial: Trial, voucher: Voucher) -> None:
        """An earlier session has told this, and its device may say yet that it was wrong."""
        self._unconfirmed[number] = candidate, trial, voucher
        self._inherited.add(number)
        if trial.cycles is not None:
            name = candidate.task.name
            self._scores.add(name, number, trial.cycles, is_default=candidate.is_default)

    def tell(
        self,
        number: JobId,
        candidate: Candidate,
        outcome: Outcome,
        story: Sequence[str],
        *,
        unconfirmed: Voucher | None,
    ) -> None:
        """A candidate has ended; who is to confirm it may say yet that it was wrong."""
        trial = candidate.trial(outcome, tuple(story), self._settings.proposer)
        self._records.insert(trial, run=self._settings.run_id, unconfirmed=unconfirmed)
        if unconfirmed is not None:
            self._unconfirmed[number] = candidate, trial, unconfirmed
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
        candidate, trial, _ = self._unconfirmed.pop(number)
        self._records.doubt(trial, why)
        self._tuner.doubt(candidate.task.name, trial)
        self._scores.remove(candidate.task.name, number)
        if number in self._inherited:
            self._inherited.remove(number)
            self._earlier -= 1
        else:
            self.trials -= 1
        if self._log is not None:
            self._log("suspect", run=self._settings.run_id, job=number, device=trial.device)
        return candidate

    def drop(self, candidate: Candidate) -> None:
        """Nobody will measure a candidate."""
        self._tuner.tell(candidate.task.name, candidate.cancelled())

    def confirm(self, device: str) -> None:
        """A device was right until now: what was told of it stays."""
        sure = [n for n, (_, _, who) in self._unconfirmed.items() if who.device == device]
        if sure:
            self._records.confirm(device)
        for number in sure:
            del self._unconfirmed[number]

    def spoiled(self, device: str, fence: int) -> tuple[JobId, ...]:
        """What is still in doubt of what a device gave under a lease, or under earlier ones."""
        return tuple(
            number
            for number, (_, _, who) in self._unconfirmed.items()
            if who.device == device and who.fence <= fence
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
                story=" > ".join(story),
            )
