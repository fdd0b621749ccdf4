"""The best few of each workload, timed again where only the clock tells times: see `tuner.run_off`.

Nothing is timed that the records know already, so a repeated command comes to the same end at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tilefarm.artifact import Artifact
from tilefarm.digest import Digest
from tilefarm.measurement import DeviceClock, Measurement, Trial, WallTime
from tilefarm.plural import plural

from driver.campaign.measuring import CLOSE_LOOK, Task
from driver.farm.compiling.executor import Executor
from driver.farm.compiling.once import compiled
from driver.farm.device_messages import RunEnded
from driver.farm.lease_source import LeaseSource
from driver.tune.prepared import trials_of
from driver.tune.run_context import RunContext
from tuner.run_off import RunOff, finalists, is_decided
from tuner.trial_store import TrialStore

_ROUNDS: Final = 5
_ATTEMPTS: Final = 3
"""A run-off that two devices shared is none, and is done again."""


def run_offs(
    context: RunContext,
    tasks: Mapping[str, Task],
    store: TrialStore,
    *,
    executor: Executor,
    leases: LeaseSource,
) -> None:
    """Compare finalists that were not compared yet, and keep what came of it.

    Raises:
        NoDeviceError, DeviceLostError: see `JobRunner.run`.
        InfraError: a finalist does not compile any more.
    """
    due = {
        name: finalists(trials)
        for name, task in tasks.items()
        for trials in (trials_of(task, store),)
        if not is_decided(trials, store.run_off(task.digest))
    }
    if not due:
        return
    with context.step("run-off") as say:
        for name, trials in due.items():
            found = _RunOff(context, tasks[name], trials, executor, leases).run()
            if found is not None:
                store.insert_run_off(found)
        count = sum(map(len, due.values()))
        say(f"{plural(count, 'finalist')} of {plural(len(due), 'workload')} timed again, in turn")


class _RunOff:
    """One workload's."""

    def __init__(
        self,
        context: RunContext,
        task: Task,
        trials: Sequence[Trial],
        executor: Executor,
        leases: LeaseSource,
    ) -> None:
        self._context = context
        self._task = task
        self._trials = trials
        self._executor = executor
        self._leases = leases

    def run(self) -> RunOff | None:
        """How they compare; None where no device has timed them all, or the farm was at fault."""
        artifacts = compiled(
            self._executor,
            [self._task.compile_job(self._task.trace(dict(t.point))) for t in self._trials],
        )
        for attempt in range(_ATTEMPTS):
            done = self._timed(artifacts, attempt)
            devices = {each.device for each in done}
            if any(each.is_spoiled for each in done):
                break
            if len(devices) == 1:
                return RunOff(
                    workload=self._task.digest, device=devices.pop(), times=self._times(done)
                )
        self._context.say(f"{self._task.name}: no device could time all finalists, so none is sure")
        return None

    def _timed(self, artifacts: Sequence[Artifact], attempt: int) -> list[RunEnded]:
        """A B C A B C …, each as a run, on one device as long as it lives."""
        settings = self._context.settings.farm
        orders = [
            self._task.order(
                artifact,
                f"{self._context.run_id}-{self._task.digest.short}-{attempt}-{turn}-{at}",
                timeout_seconds=settings.run_timeout_seconds,
                precision=CLOSE_LOOK,
                clock=DeviceClock.SECONDS,
            )
            for turn in range(_ROUNDS)
            for at, artifact in enumerate(artifacts)
        ]
        runner = self._context.runner(self._leases, devices=1)
        with self._context.watch.waiting(runner.waits_for):
            return runner.run(
                orders, lambda done: self._context.note_run(done, "rerun", self._task.name)
            )

    def _times(self, done: Sequence[RunEnded]) -> dict[Digest, tuple[WallTime, ...]]:
        """By trace; those that have not ended well each time have none."""
        times: dict[Digest, tuple[WallTime, ...]] = {}
        for at, trial in enumerate(self._trials):
            outcomes = [each.result for each in done[at :: len(self._trials)]]
            rounds = tuple(
                outcome.wall_time
                for outcome in outcomes
                if isinstance(outcome, Measurement) and outcome.wall_time is not None
            )
            times[trial.trace] = rounds if len(rounds) == len(outcomes) else ()
        return times
