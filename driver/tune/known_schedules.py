"""What a run takes from the records of other runs, and what it adds to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from tilefarm.measurement import Status, Trial
from tilefarm.plural import plural
from tilefarm.space import Point

from driver.campaign.measuring import Task
from driver.tune.prepared import trials_of
from tuner.sampler import Sampler
from tuner.schedule_store import ScheduleRecord, ScheduleStore
from tuner.trial_store import TrialStore
from tuner.workload_distance import distance

_AS_GOOD: Final = 0.001
"""A difference below this is none."""
_FAR: Final = 6.0
"""Factors of two from which on another workload says nothing."""
_TRIED: Final = 8
"""Schedules of another workload, the best first; tiles of most fit extents that they divide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSchedules:
    """What records say of a run's workloads.

    Attributes:
        points: the best schedule of each workload that has any, by its name.
        near: those of them that are schedules of another workload, near to it: the name of that.
        workloads: of the run.
        outdated: schedules whose point means another one by now, or that claim what cannot be.
    """

    points: Mapping[str, Point]
    near: Mapping[str, str]
    workloads: int
    outdated: int

    def __str__(self) -> str:
        known = len(self.points) - len(self.near)
        words = [f"{known} of {plural(self.workloads, 'workload')} known"]
        if self.near:
            words.append(f"{len(self.near)} near to others that are")
        if self.outdated:
            words.append(f"{plural(self.outdated, 'schedule')} of other spaces or times left out")
        return ", ".join(words)


def known_schedules(tasks: Mapping[str, Task], store: ScheduleStore) -> KnownSchedules:
    """The best that is known of each task for its target, or else of the workload nearest to it."""
    points: dict[str, Point] = {}
    near: dict[str, str] = {}
    outdated = 0
    for name, task in tasks.items():
        for record in store.records(task.target.digest, task.digest):
            if is_usable(task, record):
                points[name] = dict(record.point)
                break
            outdated += 1
    for name, task in tasks.items():
        if name not in points and (found := _nearest(task, store)) is not None:
            points[name], near[name] = found
    return KnownSchedules(points=points, near=near, workloads=len(tasks), outdated=outdated)


def _nearest(task: Task, store: ScheduleStore) -> tuple[Point, str] | None:
    """A schedule of the nearest workload that has one which the task's space has too; whose it is.

    What that workload's space has no word for, such as where a bias is loaded, is whatever fits.
    """
    others = {each.best.workload for each in store.workloads(task.target.digest)}
    far = {other: distance(task.workload, other) for other in others - {task.workload}}
    sampler = Sampler(task.space)
    for other in sorted(far, key=lambda each: (far[each], each.digest.hex)):
        if far[other] > _FAR:
            break
        for record in islice(store.records(task.target.digest, other.digest), _TRIED):
            known = {name: value for name, value in record.point if name in task.tunables}
            if 2 * len(known) <= len(task.tunables):
                continue
            if (point := sampler.filled(known)) is not None:
                return dict(task.choice(point)), other.name
    return None


def is_usable(task: Task, record: ScheduleRecord) -> bool:
    """Whether the record's point still means its schedule, and its time can be."""
    point = dict(record.point)
    domains = {variable.name: variable.domain for variable in task.space.tunables}
    if any(value not in domains.get(name, (value,)) for name, value in point.items()):
        return False
    try:
        if task.trace(point).digest != record.trace:
            return False
    except (KeyError, ValueError):
        return False
    trial = Trial(
        workload=task.digest,
        trace=record.trace,
        point=record.point,
        status=Status.OK,
        cycles=record.cycles,
        wall_time=record.wall_time,
    )
    return task.believed(trial).status is Status.OK


def records_of(
    tasks: Mapping[str, Task], store: TrialStore, version: str
) -> Iterator[ScheduleRecord]:
    """Every schedule of these tasks that a folder's trials have timed."""
    for task in tasks.values():
        for trial in trials_of(task, store):
            if trial.status is Status.OK and trial.cost is not None:
                point = ((n, value) for n, value in trial.point if n in task.tunables)
                yield ScheduleRecord.of_trial(
                    replace(trial, point=tuple(point)),
                    task.workload,
                    target=task.target.digest,
                    target_name=task.target.name,
                    version=version,
                )


def success(known: Mapping[str, Point | None], tasks: Mapping[str, Task], store: TrialStore) -> str:
    """How good what was known is beside all that the folder has by now; "" if nothing was.

    What was known of tasks that the folder had under other options says nothing of these.
    """
    behind = []
    for name, point in known.items():
        if point is None or name not in tasks:
            continue
        task = tasks[name]
        trials = trials_of(task, store)
        costs = [trial.cost for trial in trials if trial.cost is not None]
        chosen = tuple((name, point.get(name)) for name in task.tunables)
        of_point = [trial.cost for trial in trials if task.choice(dict(trial.point)) == chosen]
        if len(costs) > 1 and of_point and of_point[0] is not None:
            behind.append(of_point[0] / min(costs) - 1)
    if not behind:
        return ""
    best = sum(each <= _AS_GOOD for each in behind)
    if best == len(behind):
        return "nothing better was found than what was known"
    found = plural(len(behind) - best, "workload")
    return f"better than what was known in {found}, by {max(behind):.1%} at most"
