"""Where only the peak is asked for, plans run operations in the order with the least one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driver.memory import Buffer, Engine, Infeasible, Memory, Op, Plan, Problem, plan, validate
from driver.memory.instance import instance_of
from driver.memory.order import least_peak_sequence

BRANCHES = Problem(
    buffers=(
        Buffer(name="wide a", nbytes=8_900),
        Buffer(name="wide b", nbytes=10_000),
        Buffer(name="a", nbytes=100),
        Buffer(name="b", nbytes=100),
        Buffer(name="sum", nbytes=100, needed_after=True),
    ),
    ops=(
        Op(name="a1", writes=("wide a",)),
        Op(name="b1", writes=("wide b",)),
        Op(name="a2", reads=("wide a",), writes=("a",)),
        Op(name="b2", reads=("wide b",), writes=("b",)),
        Op(name="add", reads=("a", "b"), writes=("sum",)),
    ),
    memories=(Memory(name="arena", alignment=4),),
    engines=(Engine(name="steps", in_order=False),),
)
"""Two branches, interleaved."""

IN_ORDER = replace(BRANCHES, engines=(Engine(name="steps"),))


def planned(problem: Problem) -> Plan:
    found = plan(problem)
    assert isinstance(found, Plan)
    assert validate(problem, found)
    return found


def test_interleaved_branches_run_one_after_the_other() -> None:
    found = planned(BRANCHES)
    assert (found.peak_nbytes("arena"), found.makespan_ticks) == (10_100, 5)
    assert found.order == ("b1", "b2", "a1", "a2", "add")
    assert found == planned(BRANCHES)


def test_an_engine_that_keeps_its_order_needs_what_the_given_order_needs() -> None:
    found = planned(IN_ORDER)
    assert found.peak_nbytes("arena") == 19_000
    assert found.order == ("a1", "b1", "a2", "b2", "add")


@pytest.mark.parametrize(("capacity", "fits"), [(10_100, True), (10_096, False)])
def test_what_fits_in_another_order_alone_is_planned(capacity: int, fits: bool) -> None:
    memory = Memory(name="arena", alignment=4, capacity_nbytes=capacity)
    assert isinstance(plan(replace(IN_ORDER, memories=(memory,))), Infeasible)
    free = replace(BRANCHES, memories=(memory,))
    if fits:
        assert planned(free).peak_nbytes("arena") == 10_100
    else:
        assert isinstance(plan(free), Infeasible)


def test_a_plan_whose_time_was_over_says_so() -> None:
    ticks = iter((0.0, *[9.0] * 100))
    found = plan(BRANCHES, seconds=5, clock=lambda: next(ticks))
    assert isinstance(found, Plan)
    assert "ended by its time limit" in found.method
    assert "time limit" not in planned(BRANCHES).method


def test_views_and_results_in_the_place_of_operands_are_one_buffer_each() -> None:
    """b2 works in place, and both branches end in parts of one tensor."""
    problem = replace(
        BRANCHES,
        buffers=(
            Buffer(name="wide a", nbytes=8_900),
            Buffer(name="wide b", nbytes=10_000, group="b"),
            Buffer(name="still wide b", nbytes=10_000, group="b"),
            Buffer(name="both", nbytes=200),
            Buffer(name="a", nbytes=100, view_of="both"),
            Buffer(name="b", nbytes=100, view_of="both", view_offset=100),
            Buffer(name="sum", nbytes=100, needed_after=True),
        ),
        ops=(
            *BRANCHES.ops[:3],
            Op(name="b2", reads=("wide b",), writes=("still wide b",)),
            Op(name="b3", reads=("still wide b",), writes=("b",)),
            BRANCHES.ops[4],
        ),
    )
    found = planned(problem)
    assert found.peak_nbytes("arena") == 10_200


@pytest.mark.parametrize(
    "engines",
    [
        (Engine(name="steps", in_order=False, instances=2),),
        (Engine(name="steps", in_order=False), Engine(name="others")),
    ],
)
def test_where_the_order_decides_about_time_as_well_nobody_asks(
    engines: tuple[Engine, ...],
) -> None:
    instance = instance_of(replace(BRANCHES, engines=engines))
    found = least_peak_sequence(instance, most_states=100, is_over=lambda: False)
    assert found is None
