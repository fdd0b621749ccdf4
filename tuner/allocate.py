"""Which workload of a network gets the next trial: where one is expected to save most time.

It is also what says that none is worth it any more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tilefarm.measurement import DeviceClock, Trial

_WINDOW: Final = 12
"""Trials by which the recent gain of a task is told: fewer show mostly chance."""
_HISTORY_SHARE: Final = 0.2
"""The weight of what was gained beside what may be gained: the alpha of Ansor (OSDI 2020)."""
_AT_BOUND: Final = 1.02
"""Within 2 % of what no schedule beats, more trials are better spent elsewhere."""
_HOPELESS: Final = 4
"""Warm-ups without one valid time after which a task gets no trial while others can use it."""
_LEAST_HOPELESS: Final = 8
"""Trials of these at least, however short a warm-up is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWeight:
    """What a task is worth: how often its workload runs, and what it surely cannot go below.

    0 is no bound. One in seconds is known only where the accelerator's clock rate is.
    """

    weight: int = 1
    lower_bound_cycles: int = 0
    lower_bound_seconds: float = 0.0

    def lower_bound(self, clock: DeviceClock) -> float:
        """The bound on costs that are told by that clock; 0 if there is none."""
        if clock is DeviceClock.CYCLES:
            return float(self.lower_bound_cycles)
        return self.lower_bound_seconds


@dataclass(slots=True)
class _Progress:
    worth: TaskWeight
    asked: int = 0
    best: float = math.inf
    bound: float = 0.0
    """In the unit of `best`."""
    curve: list[float] = field(default_factory=list)
    """Best cost so far after each trial that ended; infinite before the first good one."""
    hope: float | None = None
    """The least that a candidate may cost that was not tried, as far as its search knows."""
    is_closed: bool = False

    @property
    def could_gain(self) -> float:
        """Cost of one run that may still be saved, by what is hoped or by the bound."""
        if self.is_closed:
            return 0.0
        return max(0.0, self.best - max(self.bound, self.hope or 0.0))

    @property
    def out(self) -> int:
        """Trials that were handed out and have not ended."""
        return self.asked - len(self.curve)


class TaskScheduler:
    """Hands out trials, one at a time; trials may still be running while more are handed out.

    First `warm_up` trials for every task in turn. Where a search says what its candidates may cost
    (`hopes`), the next goes to the task with the largest weight * (best - that), for all trials
    that are out. Else it is weight * ((1 - a) * (best - lower bound) / trials + a * recent gain per
    trial): the gradient of Ansor's task scheduler (OSDI 2020, section 6; a = 0.2), with the
    distance to the lower bound as the optimistic forecast. A task within 2 % of its bound gets no
    more. Costs are cycles or seconds, those of all tasks by one clock; a gain within the noise of a
    measurement is none. When all tasks together can save less than `least_gain` of the whole,
    nobody gets any more.

    Trials that are out count as ones that gain nothing until they end: else a task that has just
    gained gets all that is asked for before its next ends are known. Of a task without any good end
    at most `warm_up` are out, while others can do with more.
    """

    def __init__(
        self, weights: Mapping[str, TaskWeight], *, warm_up: int, least_gain: float = 0.0
    ) -> None:
        self._tasks = {name: _Progress(worth) for name, worth in weights.items()}
        self._warm_up = warm_up
        self._least_gain = least_gain
        self._hopeful: frozenset[str] = frozenset()

    def expect(self, hopes: Mapping[str, float | None]) -> None:
        """The least that untried candidates of tasks may cost; None: nothing is known yet."""
        self._hopeful = frozenset(hopes)
        for name, hope in hopes.items():
            self._tasks[name].hope = hope

    @property
    def could_gain(self) -> float:
        """The share of the cost of all that more trials may save; infinite if nobody can tell."""
        whole = sum(t.worth.weight * t.best for t in self._tasks.values())
        known = all(t.is_closed or t.hope is not None for t in self._tasks.values())
        if not known or not 0 < whole < math.inf:
            return math.inf
        return sum(t.worth.weight * t.could_gain for t in self._tasks.values()) / whole

    def next_task(self) -> str | None:
        """The task that should get a trial now, counted as handed out; None when all are closed."""
        open_ = {n: t for n, t in self._tasks.items() if not t.is_closed}
        if not open_ or self.could_gain < self._least_gain:
            return None
        name = min(open_, key=lambda n: open_[n].asked - self._warm_up_of(n))
        if open_[name].asked >= self._warm_up_of(name):
            name = max(open_, key=lambda n: (self._promise(n), -open_[n].asked))
        self.hand_out(name)
        return name

    def hand_out(self, name: str) -> None:
        """Counts a trial that somebody else decided on."""
        self._tasks[name].asked += 1

    def tell(self, name: str, trial: Trial) -> None:
        """How a trial of a task ended. Trials that were never handed out here count as well."""
        task = self._tasks[name]
        cost, clock = trial.cost, trial.clock
        if cost is not None and clock is not None and cost * (1 + trial.noise) < task.best:
            task.best, task.bound = cost, task.worth.lower_bound(clock)
        task.curve.append(task.best)
        task.asked = max(task.asked, len(task.curve))
        if task.best <= _AT_BOUND * task.bound:
            task.is_closed = True

    def give_back(self, name: str) -> None:
        """A trial that was handed out will not take place."""
        self._tasks[name].asked -= 1

    def close(self, name: str) -> None:
        """The task has nothing left to try."""
        self._tasks[name].is_closed = True

    def _warm_up_of(self, name: str) -> int:
        """One trial says enough where an estimate leads; the others begin with so many."""
        return 1 if name in self._hopeful else self._warm_up

    def _promise(self, name: str) -> float:
        """Cost of the network that one more trial is expected to save."""
        task = self._tasks[name]
        if math.isinf(task.best):
            warm_up = max(self._warm_up_of(name), 1)
            most = max(_HOPELESS * warm_up, _LEAST_HOPELESS)
            return math.inf if task.out < warm_up and task.asked < most else 0.0
        if task.hope is not None:
            return task.worth.weight * task.could_gain / (1 + task.out)
        forecast = (task.best - task.bound) / max(task.asked, 1)
        return task.worth.weight * (
            (1 - _HISTORY_SHARE) * forecast + _HISTORY_SHARE * _recent_gain(task)
        )


def _recent_gain(task: _Progress) -> float:
    """Cost gained per trial over the last ones; the first good one and those out are no gain."""
    curve = task.curve + [task.best] * task.out
    recent = [c for c in curve[-_WINDOW - 1 :] if not math.isinf(c)]
    return (recent[0] - recent[-1]) / (len(recent) - 1) if len(recent) > 1 else 0.0
