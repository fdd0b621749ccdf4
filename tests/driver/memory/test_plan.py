"""Plans: known answers, properties, and a validator that catches every change for the worse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilefarm.errors import UserError

from driver.memory import (
    GOOD,
    AddressRange,
    Buffer,
    Op,
    Placement,
    Plan,
    Problem,
    peak_bound_nbytes,
    plan,
    validate,
)


def chain(*nbytes: int, memory: AddressRange | None = None) -> Problem:
    """Operation k reads buffer k - 1 and writes buffer k."""
    return Problem(
        buffers=tuple(Buffer(name=f"b{k}", nbytes=n) for k, n in enumerate(nbytes)),
        ops=tuple(
            Op(name=f"op{k}", reads=(f"b{k - 1}",) if k else (), writes=(f"b{k}",))
            for k in range(len(nbytes))
        ),
        memory=memory or AddressRange(alignment=1),
    )


def fan_out() -> Problem:
    """One producer; a tree of consumers of growing size."""
    sizes = {"a": 10, "b": 20, "c": 30, "d": 40, "e": 50}
    return Problem(
        buffers=tuple(Buffer(name=n, nbytes=k) for n, k in sizes.items()),
        ops=(
            Op(name="1", writes=("a",)),
            Op(name="2", reads=("a",), writes=("b",)),
            Op(name="3", reads=("a",), writes=("c",)),
            Op(name="4", reads=("b", "c"), writes=("d",)),
            Op(name="5", reads=("d",), writes=("e",)),
        ),
        memory=AddressRange(alignment=1),
    )


def test_a_chain_alternates_between_two_places() -> None:
    found = plan(chain(512, 512, 512))
    assert found.offsets == {"b0": 0, "b1": 512, "b2": 0}
    assert found.peak_nbytes == found.bound_nbytes == 1024
    assert found.method == "linear scan"


def test_a_reserved_range_moves_everything_up() -> None:
    memory = AddressRange(alignment=64, reserved=((0, 512),))
    found = plan(chain(512, 512, 512, memory=memory))
    assert found.offsets == {"b0": 512, "b1": 1024, "b2": 512}
    assert found.peak_nbytes == 1536
    assert validate(chain(512, 512, 512, memory=memory), found) is GOOD


def test_alignment_rounds_up_the_buffers_below() -> None:
    found = plan(chain(2000, 2000, 2000, memory=AddressRange(alignment=64)))
    assert found.offsets == {"b0": 0, "b1": 2048, "b2": 0}
    assert found.peak_nbytes == found.bound_nbytes == 4048


def test_a_linear_network_of_mixed_sizes_reaches_its_bound() -> None:
    problem = chain(10, 20, 100, 40, 50, 50)
    found = plan(problem)
    assert found.peak_nbytes == found.bound_nbytes == 140
    assert validate(problem, found) is GOOD


def test_a_fan_out_reaches_its_bound() -> None:
    problem = fan_out()
    found = plan(problem)
    assert found.peak_nbytes == found.bound_nbytes == 90
    assert validate(problem, found) is GOOD


def residual_network() -> Problem:
    """A ResNet-8 on 32x32 images in int8: each block's input lives until its addition."""
    buffers, ops = [Buffer(name="stem", nbytes=16384)], [Op(name="stem", writes=("stem",))]
    before = "stem"
    for stage, nbytes in enumerate((16384, 8192, 4096)):
        first, second, total = (f"{part}{stage}" for part in ("first", "second", "sum"))
        parts = {first: nbytes, second: nbytes, total: nbytes}
        skip = before
        if stage:
            skip = f"skip{stage}"
            parts[skip] = nbytes
            ops.append(Op(name=skip, reads=(before,), writes=(skip,)))
        buffers += [Buffer(name=n, nbytes=k) for n, k in parts.items()]
        ops.append(Op(name=first, reads=(before,), writes=(first,)))
        ops.append(Op(name=second, reads=(first,), writes=(second,)))
        ops.append(Op(name=total, reads=(second, skip), writes=(total,)))
        before = total
    buffers.append(Buffer(name="pooled", nbytes=64))
    ops.append(Op(name="pooled", reads=(before,), writes=("pooled",)))
    return Problem(buffers=tuple(buffers), ops=tuple(ops))


def test_a_residual_network_reaches_its_bound() -> None:
    found = plan(residual_network())
    assert found.peak_nbytes == found.bound_nbytes == 3 * 16384
    assert validate(residual_network(), found) is GOOD


def test_two_outputs_of_the_network_stay_to_the_end() -> None:
    problem = Problem(
        buffers=(
            Buffer(name="x", nbytes=100, needed_before=True),
            Buffer(name="first", nbytes=10, needed_after=True),
            Buffer(name="mid", nbytes=100),
            Buffer(name="second", nbytes=10, needed_after=True),
        ),
        ops=(
            Op(name="1", reads=("x",), writes=("first",)),
            Op(name="2", reads=("first",), writes=("mid",)),
            Op(name="3", reads=("mid",), writes=("second",)),
        ),
    )
    found = plan(problem)
    assert validate(problem, found) is GOOD
    lives = {p.buffer: (p.first_op, p.last_op) for p in found.placements}
    assert lives == {"x": (0, 0), "first": (0, 2), "mid": (1, 2), "second": (2, 2)}


def test_operations_are_put_behind_what_they_read() -> None:
    problem = chain(4, 4, 4)
    backwards = replace(problem, ops=problem.ops[::-1])
    found = plan(backwards)
    assert found.order == ("op0", "op1", "op2")
    assert validate(backwards, found) is GOOD
    assert plan(problem).order == ("op0", "op1", "op2")


def test_nothing_is_planned_well() -> None:
    empty = Problem(buffers=(), ops=())
    assert plan(empty).peak_nbytes == 0
    assert validate(empty, plan(empty)) is GOOD
    idle = Problem(buffers=(Buffer(name="unused", nbytes=9),), ops=())
    assert plan(idle).placements == ()


def test_too_little_memory_names_the_place_and_the_bytes() -> None:
    with pytest.raises(UserError, match="at op2 120 bytes are alive at once"):
        plan(chain(10, 20, 100, 10, memory=AddressRange(alignment=1, capacity_nbytes=110)))


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (Problem(buffers=(), ops=(Op(name="a", reads=("x",)),)), "unknown buffer x"),
        (
            Problem(buffers=(Buffer(name="x", nbytes=1),), ops=(Op(name="a", reads=("x",)),)),
            "nobody writes",
        ),
        (
            Problem(
                buffers=(Buffer(name="x", nbytes=1), Buffer(name="y", nbytes=1)),
                ops=(
                    Op(name="a", reads=("x",), writes=("y",)),
                    Op(name="b", reads=("y",), writes=("x",)),
                ),
            ),
            "wait for one another: a, b",
        ),
        (Problem(buffers=(), ops=(Op(name="a"), Op(name="a"))), "not unique: a"),
    ],
)
def test_a_problem_that_contradicts_itself_is_refused(problem: Problem, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        plan(problem)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Networks: every operation reads some earlier buffers and writes one or two new ones."""
    memory = AddressRange(
        alignment=draw(st.sampled_from([1, 16, 256])),
        reserved=draw(st.sampled_from([(), ((0, 100),), ((300, 512), (900, 1))])),
    )
    buffers = [Buffer(name="in", nbytes=draw(st.integers(0, 900)), needed_before=True)]
    ops = []
    for k in range(draw(st.integers(0, 12))):
        names = [b.name for b in buffers]
        reads = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        new = [
            Buffer(
                name=f"b{k}_{i}",
                nbytes=draw(st.integers(0, 900)),
                alignment=draw(st.sampled_from([0, 0, 64])),
                needed_after=draw(st.booleans()) and draw(st.booleans()),
            )
            for i in range(draw(st.integers(1, 2)))
        ]
        buffers += new
        ops.append(Op(name=f"op{k}", reads=tuple(reads), writes=tuple(b.name for b in new)))
    return Problem(buffers=tuple(buffers), ops=tuple(ops), memory=memory)


@settings(max_examples=80, deadline=None)
@given(problems())
def test_every_plan_is_valid_and_no_better_than_the_bound(problem: Problem) -> None:
    found = plan(problem)
    assert validate(problem, found) is GOOD
    assert found.peak_nbytes >= found.bound_nbytes == peak_bound_nbytes(problem)
    assert found.order == tuple(op.name for op in problem.ops)


@settings(max_examples=10, deadline=None)
@given(problems())
def test_problem_and_plan_survive_json(problem: Problem) -> None:
    found = plan(problem)
    assert Problem.from_json(problem.to_json()) == problem
    assert Plan.from_json(found.to_json()) == found
    assert plan(Problem.from_json(problem.to_json())) == found


def test_json_of_another_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="schema 1"):
        Plan.from_json('{"schema": 2}')


def changed(found: Plan, name: str, **fields: Any) -> Plan:
    """The plan with one placement changed, and its peak made to agree."""
    placements = tuple(replace(p, **fields) if p.buffer == name else p for p in found.placements)
    return replace(found, placements=placements, peak_nbytes=max(p.end for p in placements))


MEMORY = AddressRange(alignment=16, capacity_nbytes=4096, reserved=((2048, 64),))
PROBLEM = chain(512, 256, 512, memory=MEMORY)
PLAN = plan(PROBLEM)


@pytest.mark.parametrize(
    ("mutant", "rule"),
    [
        (changed(PLAN, "b1", offset=0), "overlap"),
        (changed(PLAN, "b1", offset=PLAN.offsets["b1"] + 1), "alignment"),
        (changed(PLAN, "b1", offset=4096 - 128), "capacity"),
        (changed(PLAN, "b1", offset=-16), "capacity"),
        (changed(PLAN, "b1", offset=2048 - 16), "reserved"),
        (changed(PLAN, "b1", first_op=2), "residency"),
        (changed(PLAN, "b0", last_op=0), "residency"),
        (changed(PLAN, "b1", nbytes=255), "placement"),
        (changed(PLAN, "b2", last_op=3), "placement"),
        (replace(PLAN, placements=PLAN.placements[:-1]), "placement"),
        (replace(PLAN, placements=(*PLAN.placements, PLAN.placements[0])), "placement"),
        (replace(PLAN, peak_nbytes=PLAN.peak_nbytes - 16), "peak"),
        (replace(PLAN, order=("op0", "op2", "op1")), "content"),
        (replace(PLAN, order=("op0", "op1")), "order"),
    ],
)
def test_the_validator_names_what_is_wrong(mutant: Plan, rule: str) -> None:
    verdict = validate(PROBLEM, mutant)
    assert not verdict
    assert verdict.name == rule
    assert verdict.why


@settings(max_examples=25, deadline=None)
@given(problems(), st.data())
def test_a_buffer_moved_onto_a_living_one_is_caught(problem: Problem, data: st.DataObject) -> None:
    found = plan(problem)
    solid = [p for p in found.placements if p.nbytes]
    pairs = [(a, b) for a in solid for b in solid if a is not b and _meet(a, b)]
    if pairs:
        a, b = data.draw(st.sampled_from(pairs))
        verdict = validate(problem, changed(found, a.buffer, offset=b.offset))
        assert verdict.name in ("overlap", "alignment", "reserved")


def _meet(a: Placement, b: Placement) -> bool:
    return a.first_op <= b.last_op and b.first_op <= a.last_op
