"""What the user's files say, in all the forms that the steps of a run need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tilefarm.measurement import Trial

from driver.campaign.measuring import Task
from driver.network import Network
from driver.tune.files import Files
from driver.tune.judged import JudgedNetwork
from tuner.run_off import winner
from tuner.trial_store import TrialStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The network as a float graph, in integers, as kernel calls, and as tasks to search."""

    files: Files
    judged: JudgedNetwork
    tasks: Mapping[str, Task]

    @property
    def network(self) -> Network:
        """As kernel calls."""
        return self.judged.network

    def with_steps_of(self, network: Network) -> Prepared:
        """The same with the steps in another order."""
        return replace(self, judged=replace(self.judged, network=network))


def trials_of(task: Task, store: TrialStore) -> list[Trial]:
    """The task's trials whose point still means the schedule that was measured."""
    return [
        task.believed(trial)
        for trial in store.trials(task.workload.digest)
        if _means_the_same(task, trial)
    ]


def best_of(task: Task, store: TrialStore) -> Trial | None:
    """The best of these, as the last run-off says if there was one; None: none has a cost."""
    return winner(trials_of(task, store), store.run_off(task.digest))


def _means_the_same(task: Task, trial: Trial) -> bool:
    try:
        return task.trace(dict(trial.point)).digest == trial.trace
    except (KeyError, ValueError):
        return False
