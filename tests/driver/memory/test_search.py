"""The compiled search: schedules that give addresses as they go, sequences, and limits of time."""

from __future__ import annotations

import pytest
from kit.memory_problems import memory_problem
from tilefarm.errors import UserError

from driver.benchmarks.memory.schedules import of_operations
from driver.memory import GOOD, Mode, Plan, plan, validate
from driver.memory.instance import instance_of
from driver.memory.places import placed
from driver.memory.planned import plan_of
from driver.memory.search import decoded, searched


def test_schedules_with_addresses_are_valid_plans() -> None:
    found = moved = 0
    for seed in range(120):
        problem = memory_problem(seed)
        try:
            instance = instance_of(problem)
            search = searched(instance, is_placed=True, bound=0, tries=60, seed=seed, seconds=60.0)
        except UserError:
            continue
        for schedule in search.best:
            places = placed(problem, instance, schedule, seed=0, seconds=60.0)
            assert places is not None
            made = plan_of(problem, instance, schedule, places, "")
            assert validate(problem, made) is GOOD
            found += 1
            moved += made.extra_nbytes > 0
    assert found > 180
    assert moved > 50


def test_a_schedule_is_that_of_its_own_sequence() -> None:
    instance = instance_of(of_operations(100))
    best = searched(instance, is_placed=False, bound=0, tries=500, seed=3, seconds=60.0).best[0]
    assert sum(token < 0 for token in best.tokens) > 0
    again = decoded(instance, best.tokens)
    assert again is not None
    assert (again.tokens, again.makespan, again.stays) == (best.tokens, best.makespan, best.stays)


@pytest.mark.parametrize("mode", [Mode.FEASIBLE, Mode.BEST])
def test_without_time_there_is_a_plan_that_says_so(mode: Mode) -> None:
    problem = of_operations(200)
    found = plan(problem, mode=mode, seconds=0.0)
    assert isinstance(found, Plan)
    assert validate(problem, found) is GOOD
    assert "ended by its time limit" in found.method
