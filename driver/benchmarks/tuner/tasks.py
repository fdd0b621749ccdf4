"""What one process of the bench does: all searches of a workload, or a network's first trials."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tilefarm.digest import Digest
from tilefarm.measurement import Status, Trial
from tilefarm.space import ESTIMATE, Point, SearchSpace
from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.space import has_space
from driver.benchmarks.tuner.ablations import ABLATIONS
from driver.benchmarks.tuner.conversations import Conversation, Make, conversation
from driver.benchmarks.tuner.measured_space import MeasuredSpace
from tuner import make_proposer
from tuner.guided import EstimateGuided
from tuner.proposer import Proposer
from tuner.session import TuningSession, WeightedSpace
from tuner.transfer_learning import SharedMeasurements

NOISE: Final = 0.02
"""Of the clock that is made up: 2 %."""
NOISY: Final = "guided, noisy clock"
ABLATION_SEEDS: Final = 4
"""At most: a search without an estimate takes five times as long as one with it."""
_FINAL: Final = 200
"""Trials of a whole session of a network."""
_LEARNT: Final = 8
"""Trials of each workload of a network where workloads learn from one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTask:
    """All searches of one workload.

    Attributes:
        proposers: names of tuner.PROPOSERS; beside them are all of ABLATIONS, with fewer seeds.
    """

    name: str
    workload: Workload
    target: Target
    proposers: tuple[str, ...]
    seeds: int
    trials: int


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Its searches by proposer, the fewest cycles of all, and how many points were simulated."""

    searches: Mapping[str, tuple[Conversation, ...]]
    least: float
    simulated: int


def measure_case(task: CaseTask) -> CaseResult:
    """Every proposer with every seed."""
    measured = MeasuredSpace(task.workload, task.target)

    def searches(make: Make, seeds: int, noise: float = 0.0) -> tuple[Conversation, ...]:
        return tuple(
            conversation(make, measured, seed=seed, trials=task.trials, noise=noise)
            for seed in range(seeds)
        )

    found = {name: searches(_maker(name), task.seeds) for name in task.proposers}
    few = min(task.seeds, ABLATION_SEEDS)
    found |= {name: searches(make, few) for name, make in ABLATIONS.items()}
    found[NOISY] = searches(_maker("guided"), task.seeds, NOISE)
    return CaseResult(found, measured.least, measured.count)


def _maker(name: str) -> Make:
    def make(space: SearchSpace, seed: int) -> Proposer:
        return make_proposer(name, space, seed)

    return make


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTask:
    """A network's workloads with how often each runs."""

    name: str
    workloads: tuple[tuple[Workload, int], ...]
    target: Target


@dataclass(frozen=True, slots=True)
class NetworkResult:
    """Cycles after one trial a workload, and after a few when workloads learn from one another.

    Attributes:
        trials: of the first session.
        final: after a session of 200 trials.
        alone, together: after eight trials of each, without and with others' measurements.
    """

    first: int
    trials: int
    final: int
    alone: int
    together: int


def measure_network(task: NetworkTask) -> NetworkResult:
    """One trial for each workload of a fresh session; then each with a few, one after the other."""
    counts = {w: count for w, count in task.workloads if has_space(w, task.target)}
    spaces = {w.name: MeasuredSpace(w, task.target) for w in counts}
    weights = {w.name: count for w, count in counts.items()}
    first, trials = _session(spaces, weights, 0)
    return NetworkResult(
        first=first,
        trials=trials,
        final=_session(spaces, weights, _FINAL)[0],
        alone=_after_a_few(spaces, weights, joined=False),
        together=_after_a_few(spaces, weights, joined=True),
    )


def _session(
    spaces: Mapping[str, MeasuredSpace], weights: Mapping[str, int], trials: int
) -> tuple[int, int]:
    """A network's cycles after a session of so many trials, and how many there were."""
    session = TuningSession(
        {name: WeightedSpace(each.space, weight=weights[name]) for name, each in spaces.items()},
        trials=trials,
    )
    least = dict.fromkeys(spaces, math.inf)
    while proposals := session.ask(1):
        for each in proposals:
            trial = spaces[each.task].trial(each.point)
            least[each.task] = min(least[each.task], trial.cost or math.inf)
            session.tell(each.number, trial)
    return int(sum(weights[name] * cycles for name, cycles in least.items())), session.told


def _after_a_few(
    spaces: Mapping[str, MeasuredSpace], weights: Mapping[str, int], *, joined: bool
) -> int:
    shared, total = SharedMeasurements(), 0.0
    for name, measured in spaces.items():

        def make(space: SearchSpace, seed: int) -> Proposer:
            search = EstimateGuided(space, seed)
            if joined:
                search.join(shared)
            return search

        told = conversation(make, measured, seed=0, trials=_LEARNT)
        total += weights[name] * min(told.cycles)
    return int(total)


def processor_seconds(
    tasks: Mapping[str, WeightedSpace], trials: int, clock: Callable[[], float] = time.process_time
) -> float:
    """Of proposing and learning so many trials, whose costs are made up from the estimates."""
    session, seconds, told = TuningSession(tasks, trials=trials, least_gain=0.0), 0.0, 0
    while True:
        began = clock()
        proposals = session.ask(1)
        seconds += clock() - began
        for each in proposals:
            trial = _made_up(each.point)
            began = clock()
            session.tell(each.number, trial)
            seconds += clock() - began
            told += 1
        if not proposals:
            return seconds / max(told, 1)


def _made_up(point: Point) -> Trial:
    """The estimate, off by up to a tenth as the point's digest says."""
    digest = Digest.of_json(dict(point))
    off = 1 + int(digest.hex[:4], 16) / 0xFFFF / 10
    return Trial(
        workload=digest,
        trace=digest,
        point=tuple(sorted(point.items())),
        status=Status.OK,
        cycles=round(point[ESTIMATE] * off),
    )
