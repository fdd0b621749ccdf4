"""Problems that use all that a problem can say: every plan is valid, also with other durations."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from kit.memory_problems import memory_problem
from kit.odd_problems import odd_problem
from tilefarm.errors import UserError

from driver.memory import GOOD, Mode, Plan, Problem, plan, replayed, validate

SEEDS = range(150)


def plans(seeds: range, mode: Mode) -> Iterator[tuple[Problem, Plan]]:
    for seed in seeds:
        problem = memory_problem(seed)
        try:
            found = plan(problem, mode=mode, effort=100)
        except UserError:
            continue  # a pin on what is reserved
        if isinstance(found, Plan):
            yield problem, found


def test_plans_of_the_list_scheduler_are_valid() -> None:
    moved = 0
    for problem, found in plans(SEEDS, Mode.FEASIBLE):
        assert validate(problem, found) is GOOD
        moved += found.extra_nbytes > 0
    assert moved > 5


def test_the_best_plans_are_valid() -> None:
    for problem, found in plans(range(40), Mode.BEST):
        assert validate(problem, found) is GOOD


@pytest.mark.parametrize("mode", [Mode.FEASIBLE, Mode.BEST])
def test_a_plan_stays_valid_whatever_operations_take(mode: Mode) -> None:
    rng = random.Random(7)
    for problem, found in plans(SEEDS if mode is Mode.FEASIBLE else range(20), mode):
        as_planned = replayed(problem, found, {op.name: op.ticks for op in problem.ops})
        assert validate(problem, as_planned) is GOOD
        assert as_planned.makespan_ticks <= found.makespan_ticks
        ticks = {op.name: rng.randint(1, 12) for op in problem.ops}
        changed = tuple(replace(op, duration_ticks=ticks[op.name]) for op in problem.ops)
        verdict = validate(replace(problem, ops=changed), replayed(problem, found, ticks))
        assert verdict is GOOD, verdict


@pytest.mark.parametrize("mode", [Mode.FEASIBLE, Mode.BEST])
def test_whatever_a_problem_says_its_plan_is_valid_or_it_is_refused(mode: Mode) -> None:
    planned = refused = 0
    for seed in range(250):
        problem = odd_problem(seed)
        try:
            found = plan(problem, mode=mode, effort=100)
        except UserError:
            refused += 1
            continue
        if not isinstance(found, Plan):
            assert found.why
            continue
        assert validate(problem, found) is GOOD, seed
        assert found.makespan_ticks >= found.bound_ticks, seed
        ticks = {op.name: 1 + at % 7 for at, op in enumerate(problem.ops)}
        ops = tuple(replace(op, duration_ticks=ticks[op.name]) for op in problem.ops)
        again = replayed(problem, found, ticks)
        assert validate(replace(problem, ops=ops), again) is GOOD, seed
        planned += 1
    assert planned > 40
    assert refused > 40
