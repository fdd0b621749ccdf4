"""Plans of the list scheduler: always valid, the same again, and never better than the best."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driver.benchmarks.memory.scratchpad_graphs import GraphKind, scratchpad_graph
from driver.memory import GOOD, Engine, Infeasible, Mode, Plan, Problem, plan, validate
from driver.memory.feasible.graph import StepKind, graph_of
from driver.memory.feasible.list_scheduler import list_schedule
from driver.memory.feasible.planner import feasible_schedule
from driver.memory.feasible.reorder import reordered
from driver.memory.instance import instance_of

KINDS = (GraphKind(), GraphKind(is_free=True), GraphKind(is_backed=True))


def graphs(count: int) -> list[Problem]:
    return [scratchpad_graph(seed, 3 + seed % 20, KINDS[seed % 3]) for seed in range(count)]


def test_plans_are_valid_and_only_what_is_too_large_is_refused() -> None:
    moved = 0
    for problem in graphs(90):
        found = plan(problem, mode=Mode.FEASIBLE)
        if isinstance(found, Infeasible):
            assert found.op
            assert found.demand_nbytes > found.capacity_nbytes
            continue
        assert validate(problem, found) is GOOD
        assert found.makespan_ticks >= found.bound_ticks > 0
        assert plan(problem, mode=Mode.FEASIBLE) == found
        moved += bool(found.extra_nbytes)
    assert moved > 10


def test_several_instances_and_transfers_that_keep_their_order_are_kept() -> None:
    for problem in graphs(30):
        engines = tuple(
            Engine(name=e.name, kind=e.kind, instances=2, in_order=True) for e in problem.engines
        )
        ops = tuple(replace(op, takes_all=at % 5 == 0) for at, op in enumerate(problem.ops))
        changed = replace(problem, engines=engines, ops=ops)
        found = plan(changed, mode=Mode.FEASIBLE)
        if isinstance(found, Plan):
            assert validate(changed, found) is GOOD


@pytest.mark.parametrize("seed", [2, 5, 6])
def test_the_best_plan_is_no_worse(seed: int) -> None:
    problem = scratchpad_graph(seed, 8)
    feasible, best = plan(problem, mode=Mode.FEASIBLE), plan(problem, effort=500)
    assert isinstance(feasible, Plan)
    assert isinstance(best, Plan)
    worst = feasible.makespan_ticks, feasible.extra_nbytes
    assert (best.makespan_ticks, best.extra_nbytes) <= worst


def test_final_times_are_no_later_than_those_of_the_list() -> None:
    for problem in graphs(60):
        listed = feasible_schedule(problem, instance_of(problem))
        found = plan(problem, mode=Mode.FEASIBLE)
        if isinstance(found, Plan):
            assert listed is not None
            assert found.makespan_ticks <= listed[1].makespan_ticks


def test_loads_of_the_second_pass_are_at_most_two_computations_ahead() -> None:
    problem = scratchpad_graph(3, 12)
    instance = instance_of(problem)
    graph = graph_of(problem, instance, range(len(instance.steps)))
    order = reordered(graph)
    assert sorted(order) == list(range(len(instance.steps)))
    computed = 0
    for at in order:
        if graph.kinds[at] is StepKind.COMPUTE:
            computed += 1
        elif graph.kinds[at] is StepKind.DATA:
            assert graph.levels[at] - 2 <= computed <= graph.levels[at]


def test_the_second_pass_hides_loads_that_the_first_cannot() -> None:
    """In the given order each load stands just before its user, and none may come earlier."""
    problem = scratchpad_graph(3, 12, GraphKind(capacity_nbytes=3_000_000))
    instance = instance_of(problem)
    graph = graph_of(problem, instance, range(len(instance.steps)))
    first = list_schedule(problem, graph)
    second = list_schedule(problem, graph_of(problem, instance, reordered(graph)))
    assert first is not None
    assert second is not None
    assert second.makespan_ticks < first.makespan_ticks
