"""A workload's space whose points are simulated once, however many searches ask for them."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from tilefarm.digest import Digest
from tilefarm.measurement import Status, Trial, WallTime
from tilefarm.space import Point, SearchSpace
from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.space import Generated, generate
from device_server.vta.library.library import VtaLibrary
from driver.benchmarks.workload_runner import FailedSchedule, WorkloadRunner
from tuner.sampler import Sampler

_HZ = 1e8
_REGIONS = 9


@dataclass(slots=True)
class MeasuredSpace:
    """Exact cycles by point; nothing of it travels between processes."""

    workload: Workload
    target: Target
    made: Generated = field(init=False)
    sampler: Sampler = field(init=False)
    _runner: WorkloadRunner = field(init=False)
    _cycles: dict[tuple[int, ...], int | None] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.made = generate(self.workload, self.target)
        self.sampler = Sampler(self.made.space)
        self._runner = WorkloadRunner(VtaLibrary(), self.workload, self.target, 0)

    @property
    def space(self) -> SearchSpace:
        return self.made.space

    @property
    def least(self) -> float:
        """The fewest cycles of all that was measured."""
        return min((each for each in self._cycles.values() if each), default=math.inf)

    @property
    def count(self) -> int:
        """Points that were simulated."""
        return len(self._cycles)

    def cycles(self, point: Point) -> int | None:
        """None for one that is not valid, or failed."""
        key = self.sampler.key(point)
        if key not in self._cycles:
            found = None
            if self.sampler.complete(point) is not None:
                found = self._runner.cycles(self.made.trace(point))
            self._cycles[key] = None if isinstance(found, FailedSchedule) else found
        return self._cycles[key]

    def trial(self, point: Point, *, noise: float = 0.0, seed: int = 0) -> Trial:
        """How a candidate ended; with noise told by a clock, the same for the same seed."""
        cycles = self.cycles(point)
        return Trial(
            workload=self.workload.digest,
            trace=Digest.of_json([self.sampler.key(point)]),
            point=tuple(sorted(point.items())),
            status=Status.OK if cycles is not None else Status.COMPILE_ERROR,
            cycles=None if noise else cycles,
            wall_time=self._clocked(point, cycles, noise, seed) if noise and cycles else None,
        )

    def _clocked(self, point: Point, cycles: int, noise: float, seed: int) -> WallTime:
        chance = random.Random(f"{seed} {self.sampler.key(point)}")
        times = sorted(cycles / _HZ * (1 + abs(chance.gauss(0, noise))) for _ in range(_REGIONS))
        median = times[_REGIONS // 2] * (1 + chance.gauss(0, noise / 2))
        return WallTime(
            minimum_seconds=min(times[0], median),
            p10_seconds=min(times[0], median),
            median_seconds=median,
            p90_seconds=max(times[-1], median),
            calls=1,
            regions=_REGIONS,
        )
