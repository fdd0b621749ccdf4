"""One tuning of one network: a budget of trials, shared among its workloads, in one order."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tilefarm.digest import Digest
from tilefarm.measurement import Status, Trial
from tilefarm.plural import plural
from tilefarm.space import Point, SearchSpace

from tuner import make_proposer
from tuner.allocate import TaskScheduler, TaskWeight
from tuner.conflict import conflict
from tuner.cost_model import Featurizer
from tuner.failure_streak import OVER, FailureStreak
from tuner.lookahead import USUAL, Lookahead
from tuner.proposer import Hopeful, Proposer
from tuner.sampler import Sampler
from tuner.transfer_learning import SharedMeasurements, TransferLearner

_WARM_UP: Final = 8
_RETRIES: Final = 8
_WORTH_DEFAULTS: Final = 3
"""Trials for each task from which on one of them tells what its default costs."""
_ALIKE: Final = 20
"""Failures of one task for one cause, and nothing else, after which it is given up."""


@dataclass(frozen=True, slots=True)
class WeightedSpace(TaskWeight):
    """One distinct workload: its space, and what it is worth.

    Attributes:
        seed: a point that was good in another run, to begin with; None if none is known.
        is_seed_near: it was good for another workload, near to this one: an estimate knows better
            what to begin with, and then it is the next candidate.
    """

    space: SearchSpace
    seed: Point | None = None
    is_seed_near: bool = False


@dataclass(frozen=True, slots=True)
class Proposal:
    """A point of a task's space that should be measured; `number` counts 1, 2, 3 … as asked."""

    number: int
    task: str
    point: Point


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A task of which nothing more is proposed, and why."""

    task: str
    why: str


class OtherOrderError(ValueError):
    """What ended in an earlier session is not what this one asks for, in this order."""


@dataclass(slots=True)
class _Search:
    """The search of one task.

    `leader` names another task with the same space, if there is one: that one is searched, and what
    turns out to be its best is measured here as well.
    """

    sampler: Sampler
    proposer: Proposer
    leader: str = ""
    known: set[tuple[int, ...]] = field(default_factory=set)
    """Keys of candidates that were proposed or told; these are not proposed again."""
    streak: FailureStreak = field(default_factory=FailureStreak)
    seed: Point | None = None
    """What is to be asked first."""
    near: Point | None = None
    """What is to be asked behind that."""
    best: tuple[float, Point] | None = None
    """The least cost that is known, and of which point."""
    first: Point | None = None


class TuningSession:
    """ask -> (measured elsewhere) -> tell, in any order -> ask …, until nothing more comes.

    Same arguments, same proposals: number i is proposed with the ends of exactly the first
    `lookahead.known(i - 1)` and of no others. An end that comes early waits, and nothing is
    proposed before what it has to know is there. So neither load nor chance decides what is
    searched, and a session that was killed is its arguments, and what has `ended` until then.

    Each task's seed comes first, or if it has none what its proposer says, and a seed of a workload
    near to it behind what an estimate says, even if the budget is
    smaller than the number of tasks, or was spent by other searches of which a task has no trial.
    Then come the default points, for reports say what was gained over them, where the budget is
    three times the tasks or more. Tasks whose spaces and estimates are the same are one search, and
    the best of the first is measured for the others.

    Args:
        tasks: by name.
        trials: how many trials there may be in all, those of `history` and `ended` included.
        proposer: a name of `tuner.PROPOSERS`.
        least_gain: nothing more is proposed when all that is left could save less than this share
            of the network's cost, as far as estimates, bounds and what was learnt of both tell.
        history: trials of other searches, by task: they count towards the budget and teach the
            proposers before anything is asked for, and none of them is proposed again.
        ended: task and trial by number, of earlier sessions with the same other arguments; only
            `trials` may be more now.

    Raises:
        SettingsError: unknown proposer.
        OtherOrderError: the other arguments were not the same.
    """

    def __init__(
        self,
        tasks: Mapping[str, WeightedSpace],
        *,
        trials: int,
        proposer: str = "guided",
        seed: int = 0,
        lookahead: Lookahead = USUAL,
        least_gain: float = 0.0,
        history: Mapping[str, Sequence[Trial]] | None = None,
        ended: Mapping[int, tuple[str, Trial]] | None = None,
    ) -> None:
        leaders = _leaders(tasks)
        self._searches = _searches(tasks, leaders, proposer, seed)
        self._hopeful = {
            name: search.proposer
            for name, search in self._searches.items()
            if not search.leader and isinstance(search.proposer, Hopeful)
        }
        shared = SharedMeasurements()
        for search in self._searches.values():
            if isinstance(search.proposer, TransferLearner):
                search.proposer.join(shared)
        self.lookahead = lookahead
        self._least_gain = least_gain
        self._budget = max(trials, len(tasks))
        self._are_defaults_due = trials >= _WORTH_DEFAULTS * len(tasks)
        self._openings = deque(
            (opening, name)
            for opening in (self._seed, self._first, self._near, self._default)
            for name in self._searches
        )
        """What is asked for before anybody's advice, one kind for all tasks and then the next."""
        self._followers = {n: s.leader for n, s in self._searches.items() if s.leader}
        self._scheduler = TaskScheduler(
            _together(tasks, leaders),
            warm_up=max(1, min(_WARM_UP, trials // (2 * max(1, len(tasks))))),
            least_gain=least_gain,
        )
        self._earlier = 0
        self._asked: list[str] = []
        """The tasks of all proposals; number i is at i - 1."""
        self._learnt = 0
        """The proposers know how so many of the first ones have ended."""
        self._ended: dict[int, Trial] = {}
        """Ends that they do not know yet."""
        self._spent = -1
        """So many ends were known when nothing was worth a trial; no more is asked before others
        are."""
        self._due: deque[Proposal] = deque()
        """What an earlier session asked for, and had no end of."""
        self._given_up: list[GivenUp] = []
        for name, past in (history or {}).items():
            self._teach(name, past)
        untried = sum(not search.known for search in self._searches.values())
        self._budget = max(self._budget, self._earlier + untried)
        self._resume(dict(ended or {}))

    # -- asking ------------------------------------------------------------------------------------

    def ask(self, n: int) -> list[Proposal]:
        """At most n candidates to measure.

        [] when what is to be known first has not ended yet; when all has, there will be no more.
        """
        proposals: list[Proposal] = []
        while len(proposals) < n and (proposal := self._next()) is not None:
            proposals.append(proposal)
        return proposals

    def _next(self) -> Proposal | None:
        number = self._due[0].number if self._due else self.asked + 1
        if self._earlier + number > self._budget:
            return None
        return self._due.popleft() if self._due else self._proposed()

    def _proposed(self) -> Proposal | None:
        """The next one, as all that it has to know has ended.

        Where that says that nothing is worth a trial, the next one knows how all have ended that
        were asked for: all, not those that happen to be there.
        """
        if not self._learn(self.lookahead.known(self.asked)):
            return None
        chosen = None if self._learnt == self._spent else self._chosen()
        if chosen is None:
            self._spent = self._learnt
            is_more = self._learnt < self.asked <= self._learnt + len(self._ended)
            if is_more and self._learn(self.asked):
                chosen = self._chosen()
        if chosen is None:
            self._spent = self._learnt
            return None
        self._asked.append(chosen[0])
        return Proposal(self.asked, *chosen)

    def _chosen(self) -> tuple[str, Point] | None:
        while self._openings:
            opening, name = self._openings.popleft()
            if (taken := self._unless_known(name, opening(self._searches[name]))) is not None:
                return taken
        for name, leader in self._followers.items():
            best = self._searches[leader].best
            if best is not None and (taken := self._unless_known(name, best[1])) is not None:
                return taken
        while (due_task := self._next_task()) is not None:
            point = self._unknown_point(self._searches[due_task])
            if point is not None:
                return self._taken(due_task, point)
            self._scheduler.give_back(due_task)
            self._scheduler.close(due_task)
            self._tell_empty(due_task)
        return None

    def _unless_known(self, name: str, point: Point | None) -> tuple[str, Point] | None:
        """A task and its point, which nobody's advice decided on."""
        search = self._searches[name]
        if point is None or search.sampler.key(point) in search.known:
            return None
        if not search.leader:
            self._scheduler.hand_out(name)
        return self._taken(name, point)

    def _tell_empty(self, task: str) -> None:
        """Say of a task that has no point at all which constraints leave none."""
        search = self._searches[task]
        if not search.known and (names := conflict(search.sampler.space)):
            why = f"nothing keeps all of its constraints {', '.join(names)}"
            self._given_up.append(GivenUp(task, why))

    def _next_task(self) -> str | None:
        """The task that gets the next trial; None if there is nothing left that is worth one."""
        self._scheduler.expect({name: search.hope() for name, search in self._hopeful.items()})
        return self._scheduler.next_task()

    def _taken(self, name: str, point: Point) -> tuple[str, Point]:
        """The task and its point, which is known from now on."""
        search = self._searches[name]
        search.known.add(search.sampler.key(point))
        search.first = search.first or point
        return name, point

    def _seed(self, search: _Search) -> Point | None:
        """What somebody else found good, if it is a point of this space."""
        return self._in_space(search, search.seed)

    def _near(self, search: _Search) -> Point | None:
        """What is good for a workload like this one, where the budget has trials beyond firsts."""
        return self._in_space(search, search.near) if self._are_defaults_due else None

    def _in_space(self, search: _Search, seed: Point | None) -> Point | None:
        is_whole = seed is not None and all(name in seed for name in search.sampler.tunables)
        return search.sampler.complete(seed) if seed is not None and is_whole else None

    def _first(self, search: _Search) -> Point | None:
        """What a search begins with, unless it had a seed, or history has trials of it."""
        if search.known:
            return None
        return self._searches[search.leader].first if search.leader else self._unknown_point(search)

    def _default(self, search: _Search) -> Point | None:
        """The default point of a task."""
        return search.sampler.default() if self._are_defaults_due else None

    def _unknown_point(self, search: _Search) -> Point | None:
        """What the proposer says next; the default point may be out already without its knowing."""
        for _ in range(_RETRIES):
            points = search.proposer.ask(1)
            if not points or search.sampler.key(points[0]) not in search.known:
                return points[0] if points else None
        return None

    # -- telling -----------------------------------------------------------------------------------

    def tell(self, number: int, trial: Trial) -> None:
        """How a candidate ended; a repetition is ignored."""
        if number > self._learnt:
            self._ended.setdefault(number, trial)

    def _learn(self, count: int) -> bool:
        """Let the proposers know how so many of the first candidates ended; False: some did not."""
        while self._learnt < count:
            trial = self._ended.pop(self._learnt + 1, None)
            if trial is None:
                return False
            task = self._asked[self._learnt]
            self._learnt += 1
            self._absorb(task, trial)
            self._watch(task, trial)
        return True

    def _watch(self, task: str, trial: Trial) -> None:
        """Give a task up when so many of its candidates, and no other ones, have failed alike."""
        search = self._searches[task]
        search.streak = streak = search.streak.after(trial)
        if streak.count == _ALIKE:
            search.streak = OVER
            self._scheduler.close(task)
            why = f"{plural(streak.count, 'candidate')} and no other failed alike: {streak.cause}"
            self._given_up.append(GivenUp(task, why))

    def _absorb(self, task: str, trial: Trial) -> None:
        search = self._searches[task]
        point, cost = dict(trial.point), trial.cost
        search.known.add(search.sampler.key(point))
        if search.leader:
            return
        if cost is not None and (search.best is None or cost < search.best[0]):
            search.best = cost, point
        search.proposer.tell([trial])
        self._scheduler.tell(task, trial)

    # -- what earlier sessions left ----------------------------------------------------------------

    def _teach(self, task: str, past: Sequence[Trial]) -> None:
        tunables = self._searches[task].sampler.tunables
        for trial in past:
            point = dict(trial.point)
            if trial.status is not Status.CANCELLED and all(t in point for t in tunables):
                self._absorb(task, trial)
                self._earlier += 1

    def _resume(self, ended: dict[int, tuple[str, Trial]]) -> None:
        """Ask again for what was asked for, until all that ended is met."""
        while ended:
            proposal = self._proposed()
            if proposal is None:
                raise OtherOrderError(f"number {self.asked + 1} would not be asked for")
            end = ended.pop(proposal.number, None)
            if end is None:
                self._due.append(proposal)
                continue
            task, trial = end
            key = self._searches[proposal.task].sampler.key
            if task != proposal.task or key(dict(trial.point)) != key(proposal.point):
                raise OtherOrderError(f"number {proposal.number} would be another candidate")
            self.tell(proposal.number, trial)

    # -- looking -----------------------------------------------------------------------------------

    def given_up(self) -> list[GivenUp]:
        """Tasks that were given up since this was called last."""
        given_up, self._given_up = self._given_up, []
        return given_up

    @property
    def why_ended(self) -> str:
        """Why nothing more is worth a trial, for people; "" while something is, or nobody knows."""
        could = self._scheduler.could_gain
        if could >= self._least_gain:
            return ""
        least = f"{100 * self._least_gain:g} %"
        return f"nothing left that could gain {least}: {100 * could:.2f} % by estimates and bounds"

    @property
    def asked(self) -> int:
        """The number of the last proposal; those of earlier sessions count."""
        return len(self._asked)

    @property
    def told(self) -> int:
        """Trials that ended, those of history included."""
        return self._earlier + self._learnt + len(self._ended)

    @property
    def budget(self) -> int:
        """Trials that there may be in all."""
        return self._budget


def _searches(
    tasks: Mapping[str, WeightedSpace], leaders: Mapping[str, str], proposer: str, seed: int
) -> dict[str, _Search]:
    """Of each task, with what it begins with."""
    found: dict[str, _Search] = {}
    for name, task in tasks.items():
        if leader := leaders.get(name, ""):
            search = replace(found[leader], leader=leader, known=set())
        else:
            made = make_proposer(proposer, task.space, _seed_of(seed, name))
            search = _Search(Sampler(task.space), made)
        knows_better = task.is_seed_near and isinstance(search.proposer, Hopeful)
        search.seed = None if knows_better else task.seed
        search.near = task.seed if knows_better and not leader else None
        found[name] = search
    return found


def _leaders(tasks: Mapping[str, WeightedSpace]) -> dict[str, str]:
    """Tasks whose space is that of an earlier one, and which one that is.

    Only where it has an estimate: without one it does not say what its points cost.
    """
    first: dict[SearchSpace, str] = {}
    found = {}
    for name, task in tasks.items():
        if not Featurizer(task.space).has_estimate:
            continue
        leader = first.setdefault(replace(task.space, name=""), name)
        if leader != name:
            found[name] = leader
    return found


def _together(
    tasks: Mapping[str, WeightedSpace], leaders: Mapping[str, str]
) -> dict[str, TaskWeight]:
    """The tasks that are searched, each with the weight of those that it leads."""
    return {
        name: replace(
            task,
            weight=sum(
                other.weight for each, other in tasks.items() if leaders.get(each, each) == name
            ),
        )
        for name, task in tasks.items()
        if name not in leaders
    }


def _seed_of(seed: int, task: str) -> int:
    """A seed of its own for every task, whatever the other tasks are."""
    return int(Digest.of_json([seed, task]).hex[:16], 16)
