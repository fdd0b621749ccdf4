"""The best and the default cycles of each task, as far as a search knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from driver.search.moves import JobId
from driver.search.terms import Unconfirmed
from tuner.session import TuningSession


class Scores:
    """Learns what candidates take, and forgets what was taken back.

    Args:
        best: cycles that earlier runs have reached, by task.
        defaults: cycles of default schedules that earlier runs measured.
    """

    def __init__(self, best: Mapping[str, int], defaults: Mapping[str, int]) -> None:
        self._earlier = dict(best)
        self._best = dict(best)
        self._defaults = dict(defaults)
        self._cycles: dict[str, dict[JobId, int]] = {}

    @classmethod
    def sure(
        cls,
        session: TuningSession,
        tasks: Iterable[str],
        unconfirmed: Sequence[Unconfirmed],
        defaults: Mapping[str, int],
    ) -> Self:
        """Those of a session that goes on, without what may turn out to be wrong."""
        unsure = {n: [dict(u.trial.point) for u in unconfirmed if u.task == n] for n in tasks}
        best = {n: session.best_cycles(n, without=points) for n, points in unsure.items()}
        return cls({n: cycles for n, cycles in best.items() if cycles is not None}, defaults)

    def best(self, task: str) -> int | None:
        """The fewest cycles."""
        return self._best.get(task)

    def default(self, task: str) -> int | None:
        """The cycles of the schedule that nothing was measured for."""
        return self._defaults.get(task)

    def add(self, task: str, number: JobId, cycles: int, *, is_default: bool) -> None:
        """A candidate was measured."""
        self._cycles.setdefault(task, {})[number] = cycles
        self._best[task] = min(cycles, self._best.get(task, cycles))
        if is_default:
            self._defaults[task] = cycles

    def remove(self, task: str, number: JobId) -> None:
        """What was measured of a candidate is worth nothing."""
        measured = self._cycles.get(task, {})
        if measured.pop(number, None) is None:
            return
        earlier = [self._earlier[task]] if task in self._earlier else []
        self._best.pop(task)
        if known := [*earlier, *measured.values()]:
            self._best[task] = min(known)
