"""What the user's files say, in all the forms that the steps of a run need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilefarm.digest import Digest
from tilefarm.measurement import Trial
from tilefarm.space import Point

from driver.frontend import Dataset
from driver.graph.ir import Graph
from driver.integer.network import Network
from driver.integer.qir import QuantGraph
from driver.search.measuring import Task
from driver.search.terms import Unconfirmed
from tuner.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The network as a float graph, in integers, as kernel calls, and as tasks to search."""

    graph: Graph
    quantized: QuantGraph
    network: Network
    tasks: Mapping[str, Task]
    evaluation: Dataset
    model_digest: Digest


def trials_of(task: Task, store: Store) -> list[Trial]:
    """The task's trials whose point still means the schedule that was measured."""
    return [trial for trial in store.trials(task.workload.digest) if _means_the_same(task, trial)]


def again_of(task: Task, store: Store) -> list[Point]:
    """What earlier sessions have taken back of a task, and ended before it was measured anew."""
    taken_back = store.to_measure_again(task.workload.digest)
    return [dict(trial.point) for trial in taken_back if _means_the_same(task, trial)]


def unconfirmed_of(history: Mapping[str, Sequence[Trial]], store: Store) -> list[Unconfirmed]:
    """Which of the tasks' trials, by their names, may still turn out to be wrong."""
    names = {(t.workload, t.trace): name for name, trials in history.items() for t in trials}
    return [
        Unconfirmed(task=names[key], trial=trial, voucher=voucher)
        for trial, voucher in store.unconfirmed()
        if (key := (trial.workload, trial.trace)) in names
    ]


def _means_the_same(task: Task, trial: Trial) -> bool:
    try:
        return task.trace(dict(trial.point)).digest == trial.trace
    except (KeyError, ValueError):
        return False
