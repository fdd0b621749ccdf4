"""Which workloads a short search is for: as many as get a few trials each, others with each seed.

To learn what a workload's space may still give takes as long as some trials do. A search of a few
trials that looks at all workloads of a network spends its time on looking.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from driver.campaign.measuring import Task
from driver.tune.chosen_schedules import chosen_schedules, given_schedules
from driver.tune.prepared import best_of
from tuner.trial_store import TrialStore

_TRIALS_EACH: Final = 4


def searched_few(
    tasks: Mapping[str, Task], store: TrialStore, *, trials: int, seed: int
) -> dict[str, Task]:
    """The tasks, those that are not searched with nothing to choose but their best schedule.

    Args:
        store: has what is known of them.
        trials: of the search.
        seed: decides, among those of which any schedule could be better, by what they could save
            of the network's time.
    """
    gains = {name: gain for name, task in tasks.items() if (gain := _most_gain(task, store)) > 0}
    most = max(1, trials // _TRIALS_EACH)
    if len(gains) <= most:
        return dict(tasks)
    shares = np.asarray([*gains.values()])
    rng = np.random.default_rng(seed)
    chosen = rng.choice([*gains], most, replace=False, p=shares / shares.sum())
    left = {name: task for name, task in tasks.items() if name not in set(chosen)}
    return {**tasks, **given_schedules(left, chosen_schedules(left, store)).tasks}


def _most_gain(task: Task, store: TrialStore) -> float:
    """Cost of the network that no schedule of a workload can save more than; 0 if nothing is known.

    By a clock, for which nobody knows a bound, all that it takes.
    """
    best = best_of(task, store)
    if best is None or best.cost is None:
        return 0.0
    return task.count * max(0.0, best.cost - (task.least_cycles if best.cycles else 0))
