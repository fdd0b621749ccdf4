"""The schedules that a program was built with, as a file: any later version builds it again.

A schedule is kept by its steps. What a space of another version says of its point does not matter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tilefarm.digest import canonical_json
from tilefarm.documents import read_json
from tilefarm.errors import DataError
from tilefarm.plural import plural
from tilefarm.readable import readable
from tilefarm.space import Point, SearchSpace, Variable
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.draft import LARGEST
from driver.campaign.measuring import Task
from driver.tune.continued import SEEDS
from driver.tune.prepared import best_of
from driver.tune.run_context import RunContext
from tuner.trial_store import TrialStore

SCHEMA: Final = 1
GIVEN: Final = "-given"
"""Behind the name of a run that has measured none of its trials: they are of given schedules."""
_REMEDY: Final = "the schedules.json that a `tilefarm tune` has left in its folder"
_NAMED: Final = 3
"""Workloads that a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSchedule:
    """The schedule of one workload, as its steps and as the point of its space that meant them."""

    workload: Workload
    trace: Trace
    point: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSchedules:
    """Tasks that have one schedule each, where there is one for them.

    Attributes:
        tasks: by name, in the order of the network; those of which nothing is known as they were.
        missing: the names of these.
        unused: how many of the schedules are of no workload here.
    """

    tasks: Mapping[str, Task]
    missing: tuple[str, ...]
    unused: int

    def __str__(self) -> str:
        words = [f"{len(self.tasks) - len(self.missing)} of {plural(len(self.tasks), 'workload')}"]
        if self.missing:
            names = ", ".join(self.missing[:_NAMED]) + ", ..." * (len(self.missing) > _NAMED)
            words.append(
                f"{len(self.missing)} without one begin with the best that is known: {names}"
            )
        if self.unused:
            words.append(f"{plural(self.unused, 'schedule')} of no workload here")
        return "; ".join(words)


def given_schedules(
    tasks: Mapping[str, Task], schedules: Sequence[ChosenSchedule]
) -> GivenSchedules:
    """The tasks with nothing to choose but these schedules."""
    by_workload = {chosen.workload: chosen for chosen in schedules}
    known = {name: by_workload.get(task.workload) for name, task in tasks.items()}
    found = {
        name: task if (chosen := known[name]) is None else _with_schedule(task, chosen)
        for name, task in tasks.items()
    }
    missing = tuple(name for name, chosen in known.items() if chosen is None)
    unused = len(by_workload) - (len(tasks) - len(missing))
    return GivenSchedules(tasks=found, missing=missing, unused=unused)


def _with_schedule(task: Task, chosen: ChosenSchedule) -> Task:
    """The task with a space of one point; it is called as it was, so that records stay true."""
    variables = tuple(Variable(name=name, domain=(value,)) for name, value in chosen.point)
    space = SearchSpace(
        name=task.space.name,
        version=task.space.version,
        variables=variables or (Variable(name="schedule", domain=(0,)),),
        constraints=(),
        default=chosen.point or (("schedule", 0),),
    )
    return replace(task, space=space, trace=_always(chosen.trace))


def _always(trace: Trace) -> Callable[[Point], Trace]:
    def its_trace(_: Point) -> Trace:
        return trace

    return its_trace


def chosen_schedules(tasks: Mapping[str, Task], store: TrialStore) -> tuple[ChosenSchedule, ...]:
    """The best schedule of each workload, by name; of those without one none."""
    found = []
    for _, task in sorted(tasks.items()):
        best = best_of(task, store)
        if best is not None:
            point = dict(best.point)
            found.append(
                ChosenSchedule(
                    workload=task.workload, trace=task.trace(point), point=task.choice(point)
                )
            )
    return tuple(found)


def going_on_from(store: TrialStore, further: TrialStore, context: RunContext) -> None:
    """Let a folder know the trials of another one, before anything is asked for there."""
    if any(SEEDS in run.description for run in further.runs()):
        return  # A search has begun, and knew them all.
    run = f"{context.run_id}{GIVEN}"
    further.begin_run(run, {}, begun=context.wall_origin)
    for trial in store.trials():
        further.insert(trial, run=run)


def schedules_text(schedules: Iterable[ChosenSchedule]) -> str:
    """JSON, a schedule a line."""
    lines = [
        canonical_json(
            {
                "workload": json.loads(chosen.workload.to_json()),
                "trace": json.loads(chosen.trace.to_json()),
                "point": dict(chosen.point),
            }
        )
        for chosen in schedules
    ]
    rows = ",\n".join(lines)
    return f'{{"schema": {SCHEMA}, "schedules": [\n{rows}\n]}}\n'


def read_schedules(path: Path) -> tuple[ChosenSchedule, ...]:
    """What `schedules_text` wrote.

    Raises:
        DataError: it is no such file, or one of a newer version.
    """
    try:
        document = read_json(path)
    except OSError as error:
        raise DataError(f"{readable(path)}: cannot be read: {error.strerror}", _REMEDY) from None
    except ValueError as error:
        raise DataError(f"{readable(path)}: not JSON: {error}", _REMEDY) from None
    if not isinstance(document, dict) or "schedules" not in document:
        raise DataError(f"{readable(path)}: not a file of schedules", _REMEDY)
    if document.get("schema") != SCHEMA:
        raise DataError(
            f"{readable(path)}: schema {document.get('schema')!r}, this version reads {SCHEMA}",
            "a newer tilefarm, or a file of this version's",
        )
    try:
        return tuple(map(_schedule, document["schedules"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{readable(path)}: not a file of schedules: {error}", _REMEDY) from None


def _schedule(document: Any) -> ChosenSchedule:
    point = document["point"]
    if not all(type(value) is int for value in point.values()):
        raise ValueError("a value of a point is no integer")
    if not all(abs(value) <= LARGEST for value in point.values()):
        raise ValueError("a value of a point is larger than any of a space")
    return ChosenSchedule(
        workload=Workload.from_json(json.dumps(document["workload"])),
        trace=Trace.from_json(json.dumps(document["trace"])),
        point=tuple(sorted((str(name), value) for name, value in point.items())),
    )
