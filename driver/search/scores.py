"""The best and the default cycles of each task, as far as a search knows them."""

from __future__ import annotations

from collections.abc import Mapping


class Scores:
    """Learns what candidates take.

    Args:
        best: cycles that earlier runs have reached, by task.
        defaults: cycles of default schedules that earlier runs measured.
    """

    def __init__(self, best: Mapping[str, int], defaults: Mapping[str, int]) -> None:
        self._best = dict(best)
        self._defaults = dict(defaults)

    def best(self, task: str) -> int | None:
        """The fewest cycles."""
        return self._best.get(task)

    def default(self, task: str) -> int | None:
        """The cycles of the schedule that nothing was measured for."""
        return self._defaults.get(task)

    def add(self, task: str, cycles: int, *, is_default: bool) -> None:
        """A candidate was measured."""
        self._best[task] = min(cycles, self._best.get(task, cycles))
        if is_default:
            self._defaults[task] = cycles
