"""Schedules come back from their file as they were, and a task has no other than the given one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kit.search.stand_ins import toy_task
from tilefarm.errors import DataError
from tilefarm.measurement import Status, Trial
from tilefarm.space import Point
from tilefarm.trace import Step, Trace

from driver.campaign.measuring import Task
from driver.tune.chosen_schedules import (
    ChosenSchedule,
    given_schedules,
    read_schedules,
    schedules_text,
)
from driver.tune.continued import continued
from driver.tune.known_schedules import records_of
from driver.tune.prepared import best_of
from tuner.trial_store import TrialStore

TASKS = {task.name: task for task in (toy_task(1), toy_task(2))}
FIRST, SECOND = TASKS.values()


def _chosen(task: Task, point: Point) -> ChosenSchedule:
    return ChosenSchedule(workload=task.workload, trace=task.trace(point), point=task.choice(point))


DEFAULT = dict(FIRST.space.default)
OTHER = Trace((Step("tile", (99,)),))


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    chosen = (_chosen(FIRST, DEFAULT), _chosen(SECOND, DEFAULT))
    path = tmp_path / "schedules.json"
    path.write_text(schedules_text(chosen))
    assert read_schedules(path) == chosen


def test_a_task_has_the_given_schedule_whatever_its_space_says() -> None:
    outdated = replace(_chosen(FIRST, DEFAULT), trace=OTHER, point=(("gone", 7),))
    given = given_schedules(TASKS, [outdated])
    task = given.tasks[FIRST.name]
    assert task.trace(dict(task.space.default)) == OTHER
    assert not task.has_choice
    assert given.tasks[SECOND.name] is SECOND
    assert given.missing == (SECOND.name,)


def test_what_does_not_fit_is_said() -> None:
    stranger = _chosen(toy_task(3), DEFAULT)
    said = str(given_schedules(TASKS, [_chosen(FIRST, DEFAULT), stranger]))
    assert said == (
        "1 of 2 workloads; 1 without one begin with the best that is known: "
        f"{SECOND.name}; 1 schedule of no workload here"
    )


def test_nothing_else_is_asked_for(tmp_path: Path) -> None:
    given = given_schedules(TASKS, [_chosen(task, DEFAULT) for task in TASKS.values()])
    with TrialStore(tmp_path / "records.sqlite") as store:
        session = continued(
            given.tasks, store, trials=0, proposer="guided", seed=0, lookahead=None
        ).session
        asked = session.ask(9)
    assert {each.task: FIRST.choice(each.point) for each in asked} == {
        name: FIRST.choice(DEFAULT) for name in TASKS
    }


def test_a_trial_of_it_is_a_record_only_where_its_point_still_means_it(tmp_path: Path) -> None:
    given = given_schedules(TASKS, [replace(_chosen(FIRST, DEFAULT), trace=OTHER)]).tasks
    with TrialStore(tmp_path / "records.sqlite") as store:
        store.begin_run("one", {}, begun=0.0)
        trial = Trial(
            workload=FIRST.digest,
            trace=OTHER.digest,
            point=FIRST.choice(DEFAULT),
            status=Status.OK,
            cycles=900,
        )
        store.insert(trial, run="one")
        assert best_of(given[FIRST.name], store) == trial
        assert not [*records_of(TASKS, store, "0.1.0")]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("no JSON", "not JSON"),
        ("[]", "not a file of schedules"),
        ('{"schema": 9, "schedules": []}', "schema 9, this version reads 1"),
        ('{"schema": 1, "schedules": [{"point": {"a": "b"}}]}', "no integer"),
        ('{"schema": 1, "schedules": [{"point": {"a": -2147483649}}]}', "larger than any"),
        ('{"schema": 1, "schedules": [{"point": {}, "workload": 1}]}', "not a file of schedules"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "schedules.json"
    path.write_text(content)
    with pytest.raises(DataError, match=why):
        read_schedules(path)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_schedules(tmp_path / "schedules.json")
