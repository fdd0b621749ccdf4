"""One tuning of one network: a budget of trials, shared among its workloads."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tilefarm.digest import Digest
from tilefarm.measurement import Status, Trial
from tilefarm.space import Point, SearchSpace

from tuner import make_proposer
from tuner.allocate import Stake, TaskScheduler
from tuner.experience import Experience, Learner
from tuner.proposer import Proposer
from tuner.sampler import Sampler

_WARM_UP: Final = 8
_RETRIES: Final = 8


class Task(NamedTuple):
    """One distinct workload: its space, how often the network runs it, a bound on its cycles."""

    space: SearchSpace
    weight: int = 1
    lower_bound_cycles: int = 0


@dataclass(frozen=True, slots=True)
class Proposal:
    """A point of a task's space that should be measured now."""

    task: str
    point: Point


@dataclass(slots=True)
class _Search:
    """The search of one task and what it has out."""

    sampler: Sampler
    proposer: Proposer
    known: set[tuple[int, ...]] = field(default_factory=set)
    """Keys of candidates that were proposed or told; these are not proposed again."""
    ended: dict[tuple[int, ...], int | None] = field(default_factory=dict)
    """Cycles by key; None if it did not end well. Whole trials would be too large to keep."""
    best_cycles: int | None = None
    default_is_due: bool = True


class TuningSession:
    """ask -> (measured elsewhere, in any order) -> tell -> ask …, until `finished`.

    Each task's default point comes first, even if the budget is smaller than the number of tasks.
    `history` are the trials of earlier runs: they count towards the budget, teach the proposers,
    and none of them is proposed again. After the defaults comes what is to be measured `again`: an
    earlier run has taken it back, and ended before it was told anew. Same arguments and same calls,
    same proposals.

    Args:
        tasks: by name; a plain (space, weight, lower_bound_cycles) does as well.
        trials: how many trials there may be in all, those of `history` included.
        proposer: a name of `tuner.PROPOSERS`.

    Raises:
        SettingsError: unknown proposer.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task],
        *,
        trials: int,
        proposer: str = "guided",
        seed: int = 0,
        history: Mapping[str, Sequence[Trial]] | None = None,
        again: Mapping[str, Sequence[Point]] | None = None,
    ) -> None:
        named = {name: Task(*task) for name, task in tasks.items()}
        self._searches = {
            name: _Search(
                Sampler(task.space), make_proposer(proposer, task.space, _seed_of(seed, name))
            )
            for name, task in named.items()
        }
        experience = Experience()
        for search in self._searches.values():
            if isinstance(search.proposer, Learner):
                search.proposer.join(experience)
        self._budget = max(trials, len(named))
        self._scheduler = TaskScheduler(
            {
                name: Stake(weight=task.weight, lower_bound_cycles=task.lower_bound_cycles)
                for name, task in named.items()
            },
            warm_up=max(1, min(_WARM_UP, trials // (2 * max(1, len(named))))),
        )
        self._told = 0
        self._in_flight = 0
        self._is_exhausted = not named
        for name, past in (history or {}).items():
            self._replay(name, past)
        self._again = deque(
            (name, point) for name, points in (again or {}).items() for point in points
        )

    # -- asking ------------------------------------------------------------------------------------

    def ask(self, n: int) -> list[Proposal]:
        """At most n candidates to measure; [] when the budget or all spaces are exhausted."""
        proposals: list[Proposal] = []
        while len(proposals) < n and self._told + self._in_flight < self._budget:
            proposal = self._next()
            if proposal is None:
                break
            proposals.append(proposal)
            self._in_flight += 1
        return proposals

    def _next(self) -> Proposal | None:
        due = next((name for name, s in self._searches.items() if s.default_is_due), None)
        if due is not None:
            return self._first(due) or self._next()
        while self._again:
            task, tunables = self._again.popleft()
            completed = self._searches[task].sampler.complete(tunables)
            if (proposal := self._chosen(task, completed)) is not None:
                return proposal
        while (name := self._scheduler.next_task()) is not None:
            point = self._unknown_point(self._searches[name])
            if point is not None:
                return Proposal(name, point)
            self._scheduler.give_back(name)
            self._scheduler.close(name)
        self._is_exhausted = True
        return None

    def _first(self, name: str) -> Proposal | None:
        """The default point of a task, unless history has it."""
        search = self._searches[name]
        search.default_is_due = False
        return self._chosen(name, search.sampler.default())

    def _chosen(self, name: str, point: Point | None) -> Proposal | None:
        """A point that no proposer has proposed, unless it is known or impossible."""
        search = self._searches[name]
        if point is None or search.sampler.key(point) in search.known:
            return None
        search.known.add(search.sampler.key(point))
        self._scheduler.hand_out(name)
        return Proposal(name, point)

    def _unknown_point(self, search: _Search) -> Point | None:
        """What the proposer says next; the default point may be out already without its knowing."""
        for _ in range(_RETRIES):
            points = search.proposer.ask(1)
            if not points:
                return None
            key = search.sampler.key(points[0])
            if key not in search.known:
                search.known.add(key)
                return points[0]
        return None

    # -- telling -----------------------------------------------------------------------------------

    def tell(self, task: str, trial: Trial) -> None:
        """How a candidate ended. A cancelled one gives its trial back; a repetition is ignored."""
        search = self._searches[task]
        key = search.sampler.key(dict(trial.point))
        if key in search.ended:
            return
        self._in_flight -= key in search.known
        if trial.status is Status.CANCELLED:
            self._scheduler.give_back(task)
            return
        self._absorb(task, key, trial)

    def doubt(self, task: str, trial: Trial) -> None:
        """A trial that was told is worth nothing; it is out again, and will be told anew.

        The proposer has learnt from it and cannot unlearn; what is best no longer counts it.
        """
        search = self._searches[task]
        key = search.sampler.key(dict(trial.point))
        if key not in search.ended:
            return
        del search.ended[key]
        self._told -= 1
        self._in_flight += 1
        good = (cycles for cycles in search.ended.values() if cycles is not None)
        search.best_cycles = min(good, default=None)

    def give_up(self, task: str) -> None:
        """Propose nothing more of a task; what is out of it may still be told."""
        self._again = deque(each for each in self._again if each[0] != task)
        self._scheduler.close(task)

    def _replay(self, task: str, past: Sequence[Trial]) -> None:
        search = self._searches[task]
        for trial in past:
            point = dict(trial.point)
            if trial.status is Status.CANCELLED or any(
                t not in point for t in search.sampler.tunables
            ):
                continue
            self._absorb(task, search.sampler.key(point), trial)

    def _absorb(self, task: str, key: tuple[int, ...], trial: Trial) -> None:
        search = self._searches[task]
        search.known.add(key)
        cycles = trial.cycles if trial.status is Status.OK else None
        search.ended[key] = cycles
        self._told += 1
        search.proposer.tell([trial])
        self._scheduler.tell(task, trial)
        if cycles is not None and (search.best_cycles is None or cycles < search.best_cycles):
            search.best_cycles = cycles

    # -- looking -----------------------------------------------------------------------------------

    def best_cycles(self, task: str, *, without: Sequence[Point] = ()) -> int | None:
        """Those of the fastest right candidate of a task so far, some points aside."""
        search = self._searches[task]
        aside = {search.sampler.key(point) for point in without}
        good = (c for key, c in search.ended.items() if c is not None and key not in aside)
        return min(good, default=None) if aside else search.best_cycles

    @property
    def told(self) -> int:
        """Trials that ended, those of history included."""
        return self._told

    @property
    def in_flight(self) -> int:
        """Candidates proposed and not told yet."""
        return self._in_flight

    @property
    def budget(self) -> int:
        """Trials that there may be in all."""
        return self._budget

    @property
    def finished(self) -> bool:
        """Whether nothing is running and nothing more will be proposed."""
        return self._in_flight == 0 and (self._told >= self._budget or self._is_exhausted)


def _seed_of(seed: int, task: str) -> int:
    """A seed of its own for every task, whatever the other tasks are."""
    return int(Digest.of_json([seed, task]).hex[:16], 16)
