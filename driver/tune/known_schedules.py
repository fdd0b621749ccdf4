"""What a run takes from the records of other runs, and what it adds to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilefarm.measurement import Status, Trial
from tilefarm.plural import plural
from tilefarm.space import Point

from driver.campaign.measuring import Task
from driver.tune.prepared import trials_of
from tuner.schedule_store import ScheduleRecord, ScheduleStore
from tuner.trial_store import TrialStore


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSchedules:
    """What records say of a run's workloads.

    Attributes:
        points: the best schedule of each workload that has any, by its name.
        workloads: of the run.
        outdated: schedules whose point means another one by now, or that claim what cannot be.
    """

    points: Mapping[str, Point]
    workloads: int
    outdated: int

    def __str__(self) -> str:
        known = f"{len(self.points)} of {plural(self.workloads, 'workload')} known"
        if not self.outdated:
            return known
        return f"{known}, {plural(self.outdated, 'schedule')} of other spaces or times left out"


def known_schedules(tasks: Mapping[str, Task], store: ScheduleStore) -> KnownSchedules:
    """The best that is known of each task, for its target."""
    points: dict[str, Point] = {}
    outdated = 0
    for name, task in tasks.items():
        for record in store.records(task.target.digest, task.digest):
            if is_usable(task, record):
                points[name] = dict(record.point)
                break
            outdated += 1
    return KnownSchedules(points=points, workloads=len(tasks), outdated=outdated)


def is_usable(task: Task, record: ScheduleRecord) -> bool:
    """Whether the record's point still means its schedule, and its time can be."""
    point = dict(record.point)
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
                yield ScheduleRecord(
                    target=task.target.digest,
                    target_name=task.target.name,
                    workload=task.workload,
                    trace=trial.trace,
                    point=tuple(
                        (name, value) for name, value in trial.point if name in task.tunables
                    ),
                    cycles=trial.cycles or None,
                    wall_time=None if trial.cycles else trial.wall_time,
                    device=trial.device,
                    version=version,
                    ended=max((end for _, _, end in trial.spans), default=0.0),
                )
