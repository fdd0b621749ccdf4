"""Operations that run again and results in their operands' places: known optima, and what is not
allowed.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from kit.memory_problems import memory_problem
from tilefarm.errors import UserError

from driver.benchmarks.memory.choices import wires
from driver.memory import (
    GOOD,
    Buffer,
    Engine,
    EngineKind,
    FirstContent,
    Infeasible,
    Memory,
    Mode,
    Op,
    Plan,
    Problem,
    Reason,
    Transfer,
    plan,
    replayed,
    validate,
)
from driver.memory.activities import ActivityKind, activities

DMA = Engine(name="dma", kind=EngineKind.DMA)


def scratchpad(capacity: int, ticks: int) -> tuple[Memory, ...]:
    """A memory, and one behind it that is so many ticks away; 0: there is none."""
    if not ticks:
        return (Memory(name="fast", capacity_nbytes=capacity, alignment=1),)
    way = Transfer(engine="dma", latency_ticks=ticks)
    fast = Memory(
        name="fast", capacity_nbytes=capacity, alignment=1, backing="far", save=way, read=way
    )
    return fast, Memory(name="far")


def hourglass(*, repeatable: bool, ticks: int) -> Problem:
    """A small x becomes the wide y, which is read at once and again at the end; in between the wide
    z has no room beside y.
    """
    nbytes = {"x": 1, "y": 10, "a": 1, "z": 10, "b": 1, "c": 1}
    content = {"x": FirstContent.PRESENT}
    return Problem(
        buffers=tuple(
            Buffer(name=n, nbytes=k, first_content=content.get(n, FirstContent.PRODUCED))
            for n, k in nbytes.items()
        ),
        ops=(
            Op(name="widen", reads=("x",), writes=("y",), duration_ticks=2, repeatable=repeatable),
            Op(name="first", reads=("y",), writes=("a",)),
            Op(name="other", reads=("a",), writes=("z",)),
            Op(name="narrow", reads=("z",), writes=("b",)),
            Op(name="last", reads=("y", "b"), writes=("c",)),
        ),
        memories=scratchpad(13, ticks),
        engines=(Engine(name="compute"), DMA),
    )


def planned(problem: Problem) -> Plan:
    found = plan(problem, effort=20_000)
    assert isinstance(found, Plan), found
    assert validate(problem, found) is GOOD, validate(problem, found)
    assert Plan.from_json(found.to_json()) == found
    assert Problem.from_json(problem.to_json()) == problem
    return found


def test_an_operation_runs_again_where_that_is_shorter_than_a_way_out_and_back() -> None:
    """Six ticks of work and two more to widen again; out and back cost 10 ticks each."""
    assert planned(hourglass(repeatable=False, ticks=10)).makespan_ticks > 8
    found = planned(hourglass(repeatable=True, ticks=10))
    assert [each.op for each in found.repeats] == ["widen"]
    assert (found.makespan_ticks, found.extra_nbytes) == (8, 0)
    done = activities(hourglass(repeatable=True, ticks=10), found)
    (again,) = [each for each in done if each.kind is ActivityKind.REPEAT]
    assert (again.name, again.lane, again.is_critical) == ("repeat widen", "compute", True)


def test_it_does_not_where_the_way_is_shorter() -> None:
    problem = hourglass(repeatable=True, ticks=1)
    slow = replace(problem.ops[0], duration_ticks=20)
    found = planned(replace(problem, ops=(slow, *problem.ops[1:])))
    assert not found.repeats
    assert found.transfers


def test_without_a_memory_behind_it_is_the_only_way() -> None:
    assert isinstance(plan(hourglass(repeatable=False, ticks=0)), Infeasible)
    assert planned(hourglass(repeatable=True, ticks=0)).makespan_ticks == 8


def test_what_it_needs_is_made_again_as_well() -> None:
    """Two steps from x to y, of which the first result has left as well."""
    problem = hourglass(repeatable=True, ticks=0)
    half = Buffer(name="h", nbytes=2)
    wide = tuple(replace(b, nbytes=11) if b.name == "z" else b for b in problem.buffers)
    ops = (
        Op(name="half", reads=("x",), writes=("h",), repeatable=True),
        replace(problem.ops[0], reads=("h",)),
        *problem.ops[1:],
        Op(name="end", reads=("x", "c")),
    )
    memories = scratchpad(14, 0)
    problem = replace(problem, buffers=(*wide, half), ops=ops, memories=memories)
    found = planned(problem)
    assert [each.op for each in found.repeats] == ["half", "widen"]
    assert found.makespan_ticks == 2 * (1 + 2) + 5


def chain(count: int, *, marked: bool, capacity: int = 10) -> Problem:
    """Elementwise operations, one after the other, on all bytes of a memory."""
    names = [f"b{k}" for k in range(count)]
    return Problem(
        buffers=tuple(Buffer(name=n, nbytes=10) for n in names),
        ops=(
            Op(name="make", writes=("b0",)),
            *(
                Op(name=f"op{k}", reads=(a,), writes=(b,), in_place=((a, b),) if marked else ())
                for k, (a, b) in enumerate(pairwise(names))
            ),
        ),
        memories=scratchpad(capacity, 0),
    )


def test_results_have_their_operands_places() -> None:
    assert isinstance(plan(chain(5, marked=False)), Infeasible)
    found = planned(chain(5, marked=True))
    assert found.peak_nbytes("fast") == 10
    assert found.makespan_ticks == 5
    assert planned(chain(5, marked=True, capacity=0)).peak_nbytes("fast") == 10
    assert planned(chain(5, marked=False, capacity=0)).peak_nbytes("fast") == 20


def test_a_result_has_not_the_place_of_what_is_needed_later() -> None:
    """`b0` is read at the end once more, so that `b1` needs bytes of its own."""
    problem = chain(3, marked=True, capacity=0)
    again = Op(name="again", reads=("b0", "b2"))
    found = planned(replace(problem, ops=(*problem.ops, again)))
    assert found.peak_nbytes("fast") == 20
    assert found.offsets["b0"] != found.offsets["b1"] == found.offsets["b2"]


def test_a_result_that_another_writes_as_well_has_a_place_of_its_own() -> None:
    """Its other half is written while the operand is still read."""
    problem = Problem(
        buffers=(
            Buffer(name="a", nbytes=8),
            Buffer(name="b", nbytes=8),
            Buffer(name="low", nbytes=4, view_of="b"),
            Buffer(name="high", nbytes=4, view_of="b", view_offset=4),
        ),
        ops=(
            Op(name="make", writes=("a",)),
            Op(name="first", reads=("a",), writes=("low",), in_place=(("a", "low"),)),
            Op(name="other", engine="dma", writes=("high",), after=("make",)),
            Op(name="end", reads=("b",)),
        ),
        memories=scratchpad(0, 0),
        engines=(Engine(name="compute"), DMA),
    )
    assert planned(problem).peak_nbytes("fast") == 16


def broken(problem: Problem, found: Plan) -> str:
    verdict = validate(problem, found)
    assert not verdict
    return verdict.name


def test_a_wrong_repeat_is_caught() -> None:
    problem = hourglass(repeatable=True, ticks=0)
    found = planned(problem)
    (again,) = found.repeats
    assert broken(hourglass(repeatable=False, ticks=0), found) == "operations"
    assert broken(problem, replace(found, repeats=())) == "residency"
    shorter = replace(again, end=again.end - 1)
    assert broken(problem, replace(found, repeats=(shorter,))) == "operations"
    other = replace(again, op="other")
    assert broken(problem, replace(found, repeats=(other,))) == "operations"
    late = replace(again, begin=again.begin + 1, end=again.end + 1)
    stays = tuple(
        replace(r, begin=r.begin + 1) if r.begin == again.begin else r for r in found.residencies
    )
    assert broken(problem, replace(found, repeats=(late,), residencies=stays)) in (
        "engine",
        "content",
    )
    gone = tuple(replace(r, end=again.begin) if r.buffer == "x" else r for r in found.residencies)
    assert broken(problem, replace(found, residencies=gone)) == "residency"


def test_a_repeat_from_what_was_overwritten_is_caught() -> None:
    """`x` is written anew after `widen` ran: it does not hold the same any more."""
    problem = hourglass(repeatable=True, ticks=0)
    found = planned(problem)
    anew = Op(name="anew", reads=("b",), writes=("x",), engine="dma")
    ops = (*problem.ops[:4], anew, problem.ops[4])
    changed = replace(problem, ops=ops)
    assert isinstance(plan(changed), Infeasible)
    (again,) = found.repeats
    time = replace(again, op="anew", begin=again.begin - 1, end=again.begin)
    both = sorted([*found.ops, time], key=lambda each: each.begin)
    assert broken(changed, replace(found, ops=tuple(both))) in ("content", "residency")


def test_a_place_that_is_taken_too_early_is_caught() -> None:
    problem = chain(3, marked=True)
    found = planned(problem)
    assert broken(chain(3, marked=False), found) == "residency"
    reader = Op(name="reader", reads=("b0",))
    wants = replace(problem, ops=(*problem.ops, reader), engines=(Engine(name="e", instances=2),))
    time = replace(found.ops[-1], op="reader", begin=2, end=3, instance=1)
    assert broken(wants, replace(found, ops=(*found.ops, time))) == "residency"
    shifted = tuple(replace(r, offset=1) if r.buffer == "b1" else r for r in found.residencies)
    roomy = replace(problem, memories=scratchpad(0, 0))
    assert broken(roomy, replace(found, residencies=shifted)) == "residency"
    kept = replace(problem.buffers[0], needed_after=True)
    assert broken(replace(problem, buffers=(kept, *problem.buffers[1:])), found) == "residency"


def marked(problem: Problem, seed: int) -> Problem:
    """Its computations may run again, and in place where bytes are the same."""
    rng = random.Random(seed)
    buffers = {b.name: b for b in problem.buffers}

    def same(op: Op) -> tuple[tuple[str, str], ...]:
        return tuple(
            (a, b)
            for a in op.reads
            for b in op.writes
            if buffers[a].nbytes == buffers[b].nbytes and a != b
        )

    return replace(
        problem,
        ops=tuple(
            replace(op, repeatable=rng.random() < 0.7, in_place=same(op)) for op in problem.ops
        ),
    )


def test_plans_that_choose_are_valid_also_with_other_durations() -> None:
    repeats = places = 0
    drawn = [(seed, memory_problem(seed)) for seed in range(100)]
    drawn += [(seed, wires(seed)) for seed in range(40)]
    for seed, problem in ((seed, marked(problem, seed)) for seed, problem in drawn):
        try:
            found = plan(problem, effort=4000)
        except UserError:
            continue
        if isinstance(found, Infeasible):
            continue
        assert validate(problem, found) is GOOD, (seed, validate(problem, found))
        repeats += len(found.repeats)
        ends = {(r.buffer, r.end, r.offset) for r in found.residencies}
        places += sum(
            (a, r.begin, r.offset) in ends
            for op in problem.ops
            for a, b in op.in_place
            for r in found.residencies
            if r.buffer == b and r.reason is Reason.WRITTEN
        )
        ticks = {op.name: random.Random(seed).randint(1, 12) for op in problem.ops}
        changed = tuple(replace(op, duration_ticks=ticks[op.name]) for op in problem.ops)
        verdict = validate(replace(problem, ops=changed), replayed(problem, found, ticks))
        assert verdict is GOOD, (seed, verdict)
    assert repeats > 20
    assert places > 20


@pytest.mark.parametrize("pair", [("b0", "b2"), ("b9", "b1")])
def test_a_pair_that_is_not_read_and_written_is_refused(pair: tuple[str, str]) -> None:
    problem = chain(3, marked=True)
    ops = (problem.ops[0], replace(problem.ops[1], in_place=(pair,)), problem.ops[2])
    with pytest.raises(UserError, match="in place of"):
        plan(replace(problem, ops=ops), mode=Mode.FEASIBLE)


@pytest.mark.slow
def test_the_solver_proves_that_running_again_is_best() -> None:
    pytest.importorskip("ortools", reason="OR-Tools is not installed")
    again = plan(hourglass(repeatable=True, ticks=10), mode=Mode.EXACT, seconds=120)
    assert isinstance(again, Plan)
    assert (again.makespan_ticks, again.gap, len(again.repeats)) == (8, 1.0, 1)
    moved = plan(hourglass(repeatable=False, ticks=10), mode=Mode.EXACT, seconds=120)
    assert isinstance(moved, Plan)
    assert (moved.makespan_ticks, moved.gap) == (25, 1.0)
