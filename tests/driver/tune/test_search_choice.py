"""A short search is for a few workloads, another few each seed; the others stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.search.stand_ins import toy_task
from tilefarm.measurement import Status, Trial

from driver.tune.search_choice import searched_few
from tuner.trial_store import TrialStore

TASKS = {task.name: task for task in map(toy_task, range(1, 9))}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TrialStore]:
    with TrialStore(tmp_path / "records.sqlite") as opened:
        opened.begin_run("one", {}, begun=0.0)
        for task in TASKS.values():
            point = dict(task.space.default)
            trial = Trial(
                workload=task.digest,
                trace=task.trace(point).digest,
                point=task.choice(point),
                status=Status.OK,
                cycles=900,
            )
            opened.insert(trial, run="one")
        yield opened


def searched(store: TrialStore, trials: int, seed: int = 0) -> set[str]:
    tasks = searched_few(TASKS, store, trials=trials, seed=seed)
    assert list(tasks) == list(TASKS)
    return {name for name, task in tasks.items() if task.has_choice}


def test_as_many_as_get_a_few_trials(store: TrialStore) -> None:
    assert [len(searched(store, trials)) for trials in (1, 8, 12, 32)] == [1, 2, 3, 8]


def test_the_same_for_a_seed_and_all_in_time(store: TrialStore) -> None:
    assert searched(store, 8, seed=3) == searched(store, 8, seed=3)
    assert set.union(*(searched(store, 8, seed=seed) for seed in range(40))) == set(TASKS)


def test_the_others_keep_their_best(store: TrialStore) -> None:
    tasks = searched_few(TASKS, store, trials=4, seed=0)
    for name, task in tasks.items():
        if not task.has_choice:
            default = dict(TASKS[name].space.default)
            assert task.trace({}) == TASKS[name].trace(default)


def test_of_what_nothing_is_known_all_is_searched(tmp_path: Path) -> None:
    with TrialStore(tmp_path / "empty.sqlite") as empty:
        assert searched(empty, 4) == set(TASKS)
