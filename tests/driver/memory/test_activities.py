"""What a plan does by engine, what decides its end, and how early buffers are brought."""

from __future__ import annotations

import pytest

from driver.benchmarks.memory.scratchpad_graphs import GraphKind, scratchpad_graph
from driver.memory import Engine, EngineKind, Op, Plan, Problem, plan
from driver.memory.activities import ActivityKind, activities, busy_ticks, lanes, leads


def planned(problem: Problem) -> Plan:
    found = plan(problem, effort=2000)
    assert isinstance(found, Plan), found
    return found


PROBLEM = scratchpad_graph(9, 7)
PLAN = planned(PROBLEM)


def test_every_operation_and_transfer_is_one_activity() -> None:
    done = activities(PROBLEM, PLAN)
    assert len(done) == len(PLAN.ops) + len(PLAN.transfers)
    kinds = {each.kind for each in done}
    others = {ActivityKind.LOAD, ActivityKind.REPEAT}
    assert kinds == set(ActivityKind) - others, "loads are operations here, and run once"
    compute = sum(each.end - each.begin for each in done if each.kind is ActivityKind.COMPUTE)
    assert busy_ticks(done, "compute") == compute


def test_the_critical_path_is_a_chain_without_gaps_from_begin_to_end() -> None:
    chain = [each for each in activities(PROBLEM, PLAN) if each.is_critical]
    assert chain[0].begin == 0
    assert chain[-1].end == PLAN.makespan_ticks
    assert [each.begin for each in chain[1:]] == [each.end for each in chain[:-1]]


def test_the_first_read_of_a_backed_buffer_is_a_load() -> None:
    problem = scratchpad_graph(9, 7, GraphKind(is_backed=True))
    done = activities(problem, planned(problem))
    first = {each.buffer for each in planned(problem).transfers}
    loads = [each for each in done if each.kind is ActivityKind.LOAD]
    assert len(loads) == len({each.name for each in loads})
    assert len(loads) <= len(first)


def test_leads_count_from_the_end_of_a_load_to_the_first_use() -> None:
    found = leads(PROBLEM, PLAN)
    assert all(lead.ticks >= 0 for lead in found)
    first = next(op for op in PROBLEM.ops if op.name == "load b0")
    times = {each.op: each for each in PLAN.ops}
    use = min(times[op.name].begin for op in PROBLEM.ops if "b0" in op.reads)
    assert next(lead.ticks for lead in found if lead.buffer == "b0") == use - times[first.name].end


@pytest.mark.parametrize(("instances", "names"), [(1, ("e",)), (2, ("e 0", "e 1"))])
def test_a_lane_is_an_instance(instances: int, names: tuple[str, ...]) -> None:
    problem = Problem(
        buffers=(),
        ops=tuple(Op(name=n, engine="e", duration_ticks=2) for n in "ab"),
        engines=(Engine(name="e", kind=EngineKind.COMPUTE, instances=instances),),
    )
    assert lanes(problem) == names
    assert {each.lane for each in activities(problem, planned(problem))} == set(names)
