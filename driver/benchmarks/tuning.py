"""The best schedules of a network's workloads: each searched alone, alike ones begin with the best.

Workloads are alike when they differ in the limits of their clips only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.space import generate, has_space, lower_bound_cycles
from device_server.vta.library.library import VtaLibrary
from driver.benchmarks.isolated import Crashed, isolated
from driver.benchmarks.search import best_point
from driver.benchmarks.workload_runner import FailedSchedule, KernelMeasurement, WorkloadRunner
from tuner.sampler import Sampler

_CLIPS: Final = frozenset({"lo", "hi"})
_ALIKE_SHARE: Final = 8
"""A workload that begins with another's best schedule has a trial of this many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningTask:
    """A workload to search."""

    workload: Workload
    target: Target
    trials: int
    seed: int
    starts: tuple[tuple[tuple[str, int], ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """A workload's best schedule and what it does; `trials` were made, `failed` of them failed.

    No schedule takes fewer cycles than `bound`.
    """

    workload: Workload
    bound: int
    trace: Trace
    measured: KernelMeasurement
    point: tuple[tuple[str, int], ...] = ()
    trials: int = 0
    failed: int = 0


Outcome: TypeAlias = Tuned | FailedSchedule | Crashed


def tuned(
    workloads: Sequence[Workload],
    target: Target,
    *,
    trials: int,
    seed: int,
    jobs: int,
    told: Callable[[Workload, Outcome], None],
) -> dict[Workload, Outcome]:
    """Search every workload in a process of its own.

    Args:
        trials: of each that is not like an earlier one.
        jobs: processes at once.
        told: hears how each ended, in order.
    """
    groups: dict[Workload, list[Workload]] = {}
    for workload in workloads:
        groups.setdefault(_kind(workload), []).append(workload)
    firsts = [group[0] for group in groups.values()]
    outcomes: dict[Workload, Outcome] = {}

    def search(several: Sequence[Workload], most: int) -> None:
        tasks = [_task(w, target, most, seed, outcomes.get(groups[_kind(w)][0])) for w in several]
        ends = isolated(tune_workload, tasks, jobs=jobs)
        for workload, outcome in zip(several, ends, strict=True):
            outcomes[workload] = outcome
            told(workload, outcome)

    search(firsts, trials)
    search([w for w in workloads if w not in outcomes], max(1, trials // _ALIKE_SHARE))
    return outcomes


def tune_workload(task: TuningTask) -> Tuned | FailedSchedule:
    """Search one workload here; one without a space is compiled as it is."""
    bench = WorkloadRunner(VtaLibrary(), task.workload, task.target, task.seed)
    if not has_space(task.workload, task.target):
        return _explained(bench, task.workload, Trace())
    made = generate(task.workload, task.target)
    sampler = Sampler(made.space)
    starts = (sampler.complete(dict(point)) for point in task.starts)
    found = best_point(
        made,
        bench,
        trials=task.trials,
        seed=task.seed,
        starts=[point for point in starts if point is not None],
    )
    if found is None:
        return FailedSchedule("search", "not one schedule ran")
    return _explained(
        bench,
        task.workload,
        made.trace(found.point),
        point=tuple((v.name, found.point[v.name]) for v in made.space.tunables),
        trials=found.trials,
        failed=found.failed,
    )


def _explained(
    bench: WorkloadRunner,
    workload: Workload,
    trace: Trace,
    *,
    point: tuple[tuple[str, int], ...] = (),
    trials: int = 0,
    failed: int = 0,
) -> Tuned | FailedSchedule:
    measured = bench.measured(trace)
    if isinstance(measured, FailedSchedule):
        return measured
    if not measured.is_right:
        return FailedSchedule("run", "the best schedule's result is not the reference's")
    return Tuned(
        workload=workload,
        bound=lower_bound_cycles(workload, bench.target),
        trace=trace,
        measured=measured,
        point=point,
        trials=trials,
        failed=failed,
    )


def _task(
    workload: Workload, target: Target, trials: int, seed: int, alike: Outcome | None
) -> TuningTask:
    starts = (alike.point,) if isinstance(alike, Tuned) else ()
    return TuningTask(workload=workload, target=target, trials=trials, seed=seed, starts=starts)


def _kind(workload: Workload) -> Workload:
    """The workload without the limits of its clips."""
    attrs = tuple((name, value) for name, value in workload.attrs if name not in _CLIPS)
    return Workload(workload.operator, workload.inputs, workload.outputs, attrs)
