"""Bounds: no plan of any problem is below one, and each is reached where it should be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from kit.memory_problems import memory_problem
from tilefarm.errors import UserError

from driver.benchmarks.memory.choices import blocks, repeatable, wires
from driver.benchmarks.memory.scratchpad_graphs import GraphKind, scratchpad_graph
from driver.memory import (
    GOOD,
    Buffer,
    Engine,
    EngineKind,
    FirstContent,
    Memory,
    Mode,
    Op,
    Plan,
    Problem,
    Transfer,
    plan,
    validate,
)


def problems() -> Iterator[Problem]:
    """Loads, groups, parts, pins; repeats and results in place; free and fixed orders."""
    for seed in range(60):
        yield memory_problem(seed)
    for seed in range(20):
        yield wires(seed)
        yield repeatable(wires(seed))
        yield blocks(seed, marked=seed % 2 == 0)
        yield scratchpad_graph(seed, 5, GraphKind(is_free=seed % 2 == 0, is_backed=seed % 3 == 0))


def test_no_plan_is_below_a_bound() -> None:
    names: dict[str, int] = {}
    for problem in problems():
        try:
            found = plan(problem, effort=20_000)
        except UserError:
            continue
        if not isinstance(found, Plan):
            continue
        assert found.makespan_ticks >= found.bound_ticks
        traffic = max((each.extra_nbytes for each in found.bounds), default=0)
        assert found.extra_nbytes >= traffic
        best = max(found.bounds, key=lambda bound: bound.ticks).name.split()[0]
        if found.makespan_ticks == found.bound_ticks:
            names[best] = names.get(best, 0) + 1
        if found.extra_nbytes:
            names["traffic"] = names.get("traffic", 0) + bool(traffic)
    assert {"longest", "work", "traffic"} <= set(names)


@pytest.mark.slow
def test_no_optimum_is_below_a_bound() -> None:
    pytest.importorskip("ortools", reason="OR-Tools is not installed")
    proven = 0
    for seed in range(40):
        problem = scratchpad_graph(seed, 5, GraphKind(is_free=seed % 2 == 0))
        found = plan(problem, mode=Mode.EXACT, seconds=10)
        if isinstance(found, Plan):
            optimum = {b.name: b.ticks for b in found.bounds}.pop("constraint model", 0)
            proven += optimum == found.makespan_ticks
            others = [b.ticks for b in found.bounds if b.name != "constraint model"]
            assert max(others) <= found.makespan_ticks
    assert proven > 20


def bound(found: object, name: str) -> int:
    assert isinstance(found, Plan)
    return next((max(b.ticks, b.extra_nbytes) for b in found.bounds if b.name == name), 0)


def reached(problem: Problem, name: str) -> int:
    """A bound that a plan reaches: of its ticks."""
    found = plan(problem, effort=20_000)
    assert isinstance(found, Plan)
    assert validate(problem, found) is GOOD
    assert bound(found, name) == found.makespan_ticks
    return found.makespan_ticks


def test_two_instances_that_keep_an_order_do_not_wait_for_one_another() -> None:
    ops = tuple(Op(name=n, duration_ticks=10) for n in "ab")
    one = Problem(buffers=(), ops=ops, engines=(Engine(name="e"),))
    assert reached(one, "longest path") == 20
    assert reached(replace(one, engines=(Engine(name="e", instances=2),)), "longest path") == 10


def test_work_counts_between_what_is_early_and_what_is_late() -> None:
    """Three of 10 ticks begin at 5 at the earliest; a short one could begin at once, and does not
    help.
    """
    ops = (
        Op(name="early", engine="dma", duration_ticks=5),
        Op(name="short", engine="e"),
        *(Op(name=n, engine="e", duration_ticks=10, after=("early",)) for n in "abc"),
    )
    engines = Engine(name="e", in_order=False), Engine(name="dma", kind=EngineKind.DMA)
    assert reached(Problem(buffers=(), ops=ops, engines=engines), "work of e") == 35


def test_bytes_by_ticks_count_where_engines_are_many() -> None:
    """Six of 4 bytes and 3 ticks, two at once in 8 bytes."""
    names = [f"op{k}" for k in range(6)]
    problem = Problem(
        buffers=tuple(Buffer(name=n, nbytes=4) for n in names),
        ops=tuple(Op(name=n, writes=(n,), duration_ticks=3) for n in names),
        memories=(Memory(name="m", capacity_nbytes=8, alignment=1),),
        engines=(Engine(name="e", instances=6),),
    )
    assert reached(problem, "bytes by ticks of m") == 9


@pytest.mark.parametrize(("content", "nbytes"), [("present", 12), ("backed", 6)])
def test_what_has_no_room_while_a_step_runs_moves_twice_or_is_only_read(
    content: str, nbytes: int
) -> None:
    """`x` is read by the first and the last, and the one between wants all bytes. Backed, it is
    read again; present, it is saved besides.
    """
    way = Transfer(engine="dma", latency_ticks=1)
    problem = Problem(
        buffers=(
            Buffer(name="x", nbytes=6, first_content=FirstContent(content)),
            Buffer(name="y", nbytes=8),
        ),
        ops=(
            Op(name="first", engine="e", reads=("x",)),
            Op(name="wide", engine="e", writes=("y",)),
            Op(name="last", engine="e", reads=("x",)),
        ),
        memories=(
            Memory(name="m", capacity_nbytes=8, alignment=1, backing="far", save=way, read=way),
            Memory(name="far"),
        ),
        engines=(Engine(name="e"), Engine(name="dma", kind=EngineKind.DMA)),
    )
    found = plan(problem, effort=20_000)
    assert isinstance(found, Plan)
    assert bound(found, "traffic of m") == found.extra_nbytes == nbytes
