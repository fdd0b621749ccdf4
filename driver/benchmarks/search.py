"""The best schedule of one workload by a seeded search on exact cycles, without farm or records.

The first trials are the tuner's guided search, then come random points that the space's own
estimate likes, and the others walk from the best schedules found to their neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from tilefarm.measurement import Status, Trial
from tilefarm.space import ESTIMATE, Point

from compile_worker.space import Generated
from driver.benchmarks.workload_runner import FailedSchedule, WorkloadRunner
from tuner import make_proposer
from tuner.sampler import Sampler

GUIDED_SHARE: Final = 0.4
LIKELY_SHARE: Final = 0.2
_SAMPLES: Final = 2000
_BATCH: Final = 8
_CENTRES: Final = 3
_NEIGHBOURS: Final = 48
_STEP: Final = 8

Told: TypeAlias = Callable[[int, int], None]
"""Is told the number of trials so far and the best cycles among them."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best point of a search: its cycles, and how many trials were made and failed."""

    point: Point
    cycles: int
    trials: int
    failed: int


def keep_quiet(trials: int, cycles: int) -> None:
    """The listener that says nothing."""
    del trials, cycles


def best_point(
    made: Generated,
    bench: WorkloadRunner,
    *,
    trials: int,
    seed: int,
    starts: Iterable[Point] = (),
    told: Told = keep_quiet,
) -> Best | None:
    """Search the space of a workload; None when not one schedule ran.

    The same space, trials, seed and starts give the same point.

    Args:
        made: the space.
        bench: measures its schedules.
        trials: schedules that are measured at most.
        starts: points to measure first, valid ones.
    """
    run = _Search(made, bench, trials, told)
    run.measure(starts)
    rng = np.random.default_rng([seed, 1])
    run.guided(seed, max(1, round(GUIDED_SHARE * trials)))
    run.likely(rng, round(LIKELY_SHARE * trials))
    run.nearby(rng)
    if not run.found:
        return None
    cycles, point = min(run.found.values(), key=lambda pair: pair[0])
    return Best(point, cycles, run.count, run.failed)


@dataclass(slots=True)
class _Search:
    made: Generated
    bench: WorkloadRunner
    trials: int
    told: Told
    count: int = 0
    failed: int = 0
    found: dict[tuple[int, ...], tuple[int, Point]] = field(default_factory=dict)
    seen: set[tuple[int, ...]] = field(default_factory=set)
    sampler: Sampler = field(init=False)

    def __post_init__(self) -> None:
        self.sampler = Sampler(self.made.space)

    def measure(self, points: Iterable[Point]) -> list[tuple[Point, int | None]]:
        """Cycles of every point that was not measured yet; None for one that failed."""
        taken: list[tuple[Point, int | None]] = []
        for point in points:
            key = self.sampler.key(point)
            if key in self.seen or self.count >= self.trials:
                continue
            self.seen.add(key)
            self.count += 1
            cycles = self.bench.cycles(self.made.trace(point))
            if isinstance(cycles, FailedSchedule):
                self.failed += 1
                taken.append((point, None))
                continue
            self.found[key] = cycles, point
            taken.append((point, cycles))
        if self.found:
            self.told(self.count, min(cycles for cycles, _ in self.found.values()))
        return taken

    def guided(self, seed: int, most: int) -> None:
        """The tuner's search, on `most` trials."""
        proposer = make_proposer("guided", self.made.space, seed)
        proposer.tell([self._trial(point, cycles) for cycles, point in self.found.values()])
        while self.count < min(most, self.trials):
            points = proposer.ask(_BATCH)
            if not points:
                return
            proposer.tell([self._trial(point, cycles) for point, cycles in self.measure(points)])

    def nearby(self, rng: np.random.Generator) -> None:
        """From the best points to neighbours that the space's own estimate likes, again and again.

        Where all around the best is known, the way goes on from more of the measured points.
        """
        centres = _CENTRES
        while self.count < self.trials and self.found:
            near = self.sampler.neighbours(self._leading(centres), rng, _NEIGHBOURS)
            fresh = self._likely(near, _STEP)
            if not fresh and centres >= len(self.found):
                return
            centres = centres if fresh else 2 * centres
            self.measure(fresh)

    def likely(self, rng: np.random.Generator, most: int) -> None:
        """Of many random points those that the space's own estimate likes."""
        self.measure(self._likely(self.sampler.sample(_SAMPLES, rng), most))

    def _leading(self, count: int) -> list[Point]:
        """The best points; of those with equal cycles one."""
        distinct = dict(self.found.values())
        return [distinct[cycles] for cycles in sorted(distinct)[:count]]

    def _likely(self, points: Iterable[Point], most: int) -> list[Point]:
        """The unmeasured points that the estimate likes best."""
        fresh = {self.sampler.key(p): p for p in points if self.sampler.key(p) not in self.seen}
        return sorted(fresh.values(), key=lambda p: p[ESTIMATE])[:most]

    def _trial(self, point: Point, cycles: int | None) -> Trial:
        return Trial(
            workload=self.bench.workload.digest,
            trace=self.made.trace(point).digest,
            point=tuple(sorted(point.items())),
            status=Status.OK if cycles is not None else Status.COMPILE_ERROR,
            cycles=cycles,
        )
