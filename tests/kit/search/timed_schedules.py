"""Schedules of small layers as hardware runs them whose memory is not as its target says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np
from tilefarm.measurement import WallTime
from tilefarm.space import ESTIMATE, Point
from tilefarm.target import BusTiming, Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.space import Generated, generate
from device_server.vta.library.library import VtaLibrary
from driver.program.vta.layers import BIASED, Convolution
from driver.program.vta.recording import record_workload
from tuner.sampler import Sampler
from tuner.schedule_store import ScheduleRecord

LAYERS: Final = (
    Convolution(16, 32, 8, 8, 3, 1, 1),
    Convolution(32, 32, 10, 10, 1, 1, 0),
    Convolution(32, 64, 12, 12, 3, 2, 1),
    Convolution(64, 16, 6, 6, 3, 1, 1),
)
"""Their good schedules run in a few thousand cycles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What measures: kernels for `target`, on a memory with another timing.

    Attributes:
        clock_mhz: times are seconds at this rate; 0: cycles.
        noise: the standard deviation of a time's logarithm.
    """

    target: Target
    really: BusTiming
    clock_mhz: int = 0
    noise: float = 0.0


def workloads(target: Target, layers: Sequence[Convolution] = LAYERS) -> list[Workload]:
    """Those of the layers, with biases."""
    return [layer.workload(target, BIASED) for layer in layers]


@cache
def cycles_of(workload: Workload, trace: Trace, hardware: Hardware) -> int:
    """What one call of a kernel takes."""
    library = VtaLibrary()
    target = hardware.target
    programs = record_workload(library, workload, trace, target, seed=0, name=workload.name)
    library.configure(replace(target, timing=hardware.really))
    runs = (library.run_stream(each.instructions, each.image()) for each in programs)
    return sum(run.counters.cycles for run in runs)


def records(
    hardware: Hardware, workload: Workload, *, count: int, seed: int = 0
) -> Iterator[ScheduleRecord]:
    """So many schedules of a workload, from the better half of what is drawn, in exact cycles."""
    rng = np.random.default_rng(seed)
    made = generate(workload, hardware.target)
    for point in _drawn(made, count, rng):
        cycles = cycles_of(workload, made.trace(point), hardware)
        yield _record(
            hardware, made, workload, point, cycles * np.exp(hardware.noise * rng.normal())
        )


def predicted_records(
    hardware: Hardware, workload: Workload, *, count: int, seed: int = 0
) -> Iterator[ScheduleRecord]:
    """As `records`, but what the estimate says of the hardware is what it takes."""
    made = generate(workload, hardware.target)
    real = generate(workload, replace(hardware.target, timing=hardware.really))
    for point in _drawn(made, count, np.random.default_rng(seed)):
        tunables = {v.name: point[v.name] for v in made.space.tunables}
        cycles = real.completed(tunables)[ESTIMATE] / 4
        yield _record(hardware, made, workload, point, cycles)


def _drawn(made: Generated, count: int, rng: np.random.Generator) -> list[Point]:
    points = Sampler(made.space).sample(2 * count, rng)
    return sorted(points, key=lambda point: point[ESTIMATE])[:count]


def _record(
    hardware: Hardware, made: Generated, workload: Workload, point: Point, cycles: float
) -> ScheduleRecord:
    seconds = cycles / (1e6 * hardware.clock_mhz) if hardware.clock_mhz else None
    return ScheduleRecord(
        target=hardware.target.digest,
        target_name=hardware.target.name,
        workload=workload,
        trace=made.trace(point).digest,
        point=tuple(sorted((v.name, point[v.name]) for v in made.space.tunables)),
        cycles=None if seconds else round(cycles),
        wall_time=wall_time(seconds) if seconds else None,
        device="board0",
    )


def wall_time(seconds: float) -> WallTime:
    """One without spread."""
    return WallTime(
        minimum_seconds=seconds,
        p10_seconds=seconds,
        median_seconds=seconds,
        p90_seconds=seconds,
        calls=1,
        regions=9,
    )
