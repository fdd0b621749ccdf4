"""The best and the default trial of each task, as far as a search knows them."""

from __future__ import annotations

from collections.abc import Mapping

from tilefarm.measurement import Trial


class Scores:
    """Learns what candidates cost, all by one clock.

    Args:
        best: the best trials of earlier runs, by task; None: none has a cost.
        defaults: trials of default schedules in earlier runs.
    """

    def __init__(
        self, best: Mapping[str, Trial | None], defaults: Mapping[str, Trial | None]
    ) -> None:
        self._best = {task: trial for task, trial in best.items() if _cost(trial)}
        self._defaults = {task: trial for task, trial in defaults.items() if _cost(trial)}

    def best(self, task: str) -> Trial | None:
        """The one that costs least."""
        return self._best.get(task)

    def default(self, task: str) -> Trial | None:
        """That of the schedule that nothing was measured for."""
        return self._defaults.get(task)

    def add(self, task: str, trial: Trial, *, is_default: bool) -> None:
        """A candidate was measured; one that failed is no news."""
        if not (cost := _cost(trial)):
            return
        best = _cost(self._best.get(task))
        if best is None or cost < best:
            self._best[task] = trial
        if is_default:
            self._defaults[task] = trial


def _cost(trial: Trial | None) -> float | None:
    return None if trial is None else trial.cost
