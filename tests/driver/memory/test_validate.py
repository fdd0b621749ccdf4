"""The validator catches every change of a plan for the worse, and takes every plan as it is."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from driver.benchmarks.memory.scratchpad_graphs import GraphKind, scratchpad_graph
from driver.memory import (
    GOOD,
    Plan,
    PlannedTransfer,
    Problem,
    Reason,
    Residency,
    TransferKind,
    plan,
    validate,
)

PROBLEM = scratchpad_graph(9, 7)
"""Its buffers leave and come back."""


def planned(problem: Problem) -> Plan:
    found = plan(problem, effort=2000)
    assert isinstance(found, Plan), found
    return found


PLAN = planned(PROBLEM)


def with_residency(at: int, **fields: object) -> Plan:
    changed = replace(PLAN.residencies[at], **fields)  # type: ignore[arg-type]
    residencies = (*PLAN.residencies[:at], changed, *PLAN.residencies[at + 1 :])
    return with_sums(replace(PLAN, residencies=residencies))


def with_sums(changed: Plan) -> Plan:
    """The plan with its peaks made to agree, so that nothing but the change is wrong."""
    peaks: dict[str, int] = {}
    for each in changed.residencies:
        peaks[each.memory] = max(peaks.get(each.memory, 0), each.end_offset)
    return replace(changed, peaks=tuple(peaks.items()))


def without_transfer(gone: PlannedTransfer) -> Plan:
    left = tuple(each for each in PLAN.transfers if each is not gone)
    return replace(PLAN, transfers=left)


def place(buffer: str, reason: Reason) -> int:
    return next(
        at
        for at, each in enumerate(PLAN.residencies)
        if (each.buffer, each.reason) == (buffer, reason)
    )


def test_the_plan_has_all_that_is_mutated() -> None:
    assert validate(PROBLEM, PLAN) is GOOD
    assert {each.kind for each in PLAN.transfers} == set(TransferKind)
    assert {each.reason for each in PLAN.residencies} == {
        Reason.WRITTEN,
        Reason.READ,
        Reason.SAVED,
    }


@pytest.mark.parametrize("by", [-1, 1])
def test_an_operation_at_another_time_is_caught(by: int) -> None:
    caught = 0
    for at, op in enumerate(PLAN.ops):
        moved = replace(op, begin=op.begin + by, end=op.end + by)
        ops = (*PLAN.ops[:at], moved, *PLAN.ops[at + 1 :])
        caught += not validate(PROBLEM, replace(PLAN, ops=ops))
        longer = replace(op, end=op.end + 1)
        ops = (*PLAN.ops[:at], longer, *PLAN.ops[at + 1 :])
        assert validate(PROBLEM, replace(PLAN, ops=ops)).name == "operations"
        ops = (*PLAN.ops[:at], *PLAN.ops[at + 1 :])
        assert validate(PROBLEM, replace(PLAN, ops=ops)).name == "operations"
    assert caught >= len(PLAN.ops) - 2, "what has slack may move"


def test_every_transfer_is_needed() -> None:
    for each in PLAN.transfers:
        verdict = validate(PROBLEM, without_transfer(each))
        assert verdict.name in ("residency", "content"), each


def test_a_transfer_at_another_time_or_of_another_cost_is_caught() -> None:
    for each in PLAN.transfers:
        for fields in (
            {"begin": each.begin - 1, "end": each.end - 1},
            {"end": each.end + 1},
            {"engine": "compute"},
            {"instance": 1},
            {"kind": next(kind for kind in TransferKind if kind is not each.kind)},
        ):
            if each.kind is TransferKind.SAVE and "begin" in fields:
                continue  # it may have slack
            changed = replace(each, **fields)
            others = tuple(other for other in PLAN.transfers if other is not each)
            assert not validate(PROBLEM, replace(PLAN, transfers=(*others, changed))), changed


def test_a_save_before_the_last_write_is_caught() -> None:
    (save, *_) = (each for each in PLAN.transfers if each.kind is TransferKind.SAVE)
    (writer,) = (op.name for op in PROBLEM.ops if save.buffer in op.writes)
    begin = next(op.begin for op in PLAN.ops if op.op == writer)
    early = replace(save, begin=begin, end=begin + save.end - save.begin)
    others = tuple(other for other in PLAN.transfers if other is not save)
    copy = place(save.buffer, Reason.SAVED)
    found = replace(with_residency(copy, begin=begin), transfers=(*others, early))
    assert validate(PROBLEM, found).name in ("content", "engine")


def test_a_residency_that_is_shorter_or_lies_elsewhere_is_caught() -> None:
    for at, each in enumerate(PLAN.residencies):
        for fields in (
            {"begin": each.begin + 1},
            {"end": each.end - 1},
            {"offset": each.offset + 1},
            {"offset": -64},
            {"offset": 1 << 40} if each.memory == "scratchpad" else {"offset": -256},
            {"nbytes": each.nbytes - 1},
            {"memory": "dram" if each.memory == "scratchpad" else "scratchpad"},
            {"buffer": "nobody"},
        ):
            assert not validate(PROBLEM, with_residency(at, **fields)), (each, fields)


def _meet(a: Residency, b: Residency) -> bool:
    return a.memory == b.memory and a.begin < b.end and b.begin < a.end


def test_a_buffer_on_a_living_one_is_caught() -> None:
    for at, one in enumerate(PLAN.residencies):
        for other in PLAN.residencies:
            if one is not other and _meet(one, other):
                changed = with_residency(at, offset=other.offset)
                assert validate(PROBLEM, changed).name in ("overlap", "address")


def test_every_reuse_edge_is_needed_and_none_is_made_up() -> None:
    edges = PLAN.reuse_edges
    assert edges
    for gone in edges:
        left = tuple(edge for edge in edges if edge != gone)
        verdict = validate(PROBLEM, replace(PLAN, reuse_edges=left))
        assert verdict.name == "reuse", gone
        assert "use the same bytes, in no order" in verdict.why
        backwards = replace(PLAN, reuse_edges=(*edges, gone[::-1]))
        assert "is said to wait for" in validate(PROBLEM, backwards).why
    nobody = replace(PLAN, reuse_edges=(*edges, (0, len(PLAN.timed))))
    assert "no operation or transfer for the edge" in validate(PROBLEM, nobody).why


def test_a_document_from_before_reuse_edges_is_read_and_says_none() -> None:
    document = json.loads(PLAN.to_json())
    assert document.pop("reuse_edges")
    old = Plan.from_json(json.dumps({**document, "schema": 2}))
    assert old == replace(PLAN, reuse_edges=None)
    assert validate(PROBLEM, old) is GOOD
    problem = json.loads(PROBLEM.to_json())
    del problem["barriers"]
    assert Problem.from_json(json.dumps({**problem, "schema": 2})) == PROBLEM


def test_what_runs_beside_one_another_holds_a_barrier() -> None:
    ticks = {tick for each in PLAN.timed for tick in (each.begin, each.end)}
    most = max(sum(each.begin <= tick < each.end for each in PLAN.timed) for tick in ticks)
    assert most > 1
    assert validate(replace(PROBLEM, barriers=most), PLAN) is GOOD
    verdict = validate(replace(PROBLEM, barriers=most - 1), PLAN)
    assert (verdict.name, verdict.why.split(" at ")[0]) == ("barriers", f"{most} run")


def test_wrong_sums_are_caught() -> None:
    wrong: Iterator[Plan] = iter(
        (
            replace(PLAN, makespan_ticks=PLAN.makespan_ticks - 1),
            replace(PLAN, extra_nbytes=PLAN.extra_nbytes + 1),
            replace(PLAN, peaks=()),
        )
    )
    assert {validate(PROBLEM, each).name for each in wrong} == {"sums"}


def test_computations_of_an_engine_keep_their_order() -> None:
    problem = scratchpad_graph(9, 7, GraphKind(is_free=True, capacity_nbytes=0))
    found = planned(problem)
    by_engine = {op.name: op.engine for op in problem.ops}
    swapped = tuple(op.name for op in problem.ops if by_engine[op.name] == "compute")
    if [op for op in found.order if op in swapped] != list(swapped):
        ordered = scratchpad_graph(9, 7, GraphKind(capacity_nbytes=0))
        assert validate(ordered, found).name == "order"


@pytest.mark.parametrize("seed", range(24))
def test_plans_of_random_graphs_are_valid_and_no_shorter_than_their_bounds(seed: int) -> None:
    rng = random.Random(seed)
    kind = GraphKind(
        capacity_nbytes=rng.choice((1_474_560, 1_900_000)),
        is_free=bool(seed % 2),
        is_backed=bool(seed % 3),
    )
    problem = scratchpad_graph(seed, rng.randrange(3, 14), kind)
    found = plan(problem, seed=seed, effort=3000)
    if isinstance(found, Plan):
        assert validate(problem, found) is GOOD
        assert found.makespan_ticks >= found.bound_ticks
        assert Plan.from_json(found.to_json()) == found
    else:
        assert found.demand_nbytes > found.capacity_nbytes
