"""Plans of one memory: known answers, properties, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from tilefarm.errors import UserError

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
    Transfer,
    TransferKind,
    plan,
    validate,
)

PLAIN = Memory(alignment=1)


def planned(problem: Problem) -> Plan:
    found = plan(problem)
    assert isinstance(found, Plan), found
    assert validate(problem, found) is GOOD
    return found


def peak_of(found: Plan) -> tuple[int, int]:
    """The peak, and what no plan with these times can beat."""
    return found.peak_nbytes("memory"), found.bound_nbytes("memory")


def chain(*nbytes: int, memory: Memory = PLAIN) -> Problem:
    """Operation k reads buffer k - 1 and writes buffer k."""
    return Problem(
        buffers=tuple(Buffer(name=f"b{k}", nbytes=n) for k, n in enumerate(nbytes)),
        ops=tuple(
            Op(name=f"op{k}", reads=(f"b{k - 1}",) if k else (), writes=(f"b{k}",))
            for k in range(len(nbytes))
        ),
        memories=(memory,),
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
        memories=(PLAIN,),
    )


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


def test_a_chain_alternates_between_two_places() -> None:
    found = planned(chain(512, 512, 512))
    assert found.offsets == {"b0": 0, "b1": 512, "b2": 0}
    assert peak_of(found) == (1024, 1024)
    assert found.method == "best of 1 schedules; packed"
    assert (found.makespan_ticks, found.gap) == (3, 1.0)


def test_a_reserved_range_moves_everything_up() -> None:
    memory = Memory(alignment=64, reserved=((0, 512),))
    found = planned(chain(512, 512, 512, memory=memory))
    assert found.offsets == {"b0": 512, "b1": 1024, "b2": 512}
    assert found.peak_nbytes("memory") == 1536


def test_alignment_rounds_up_the_buffers_below() -> None:
    found = planned(chain(2000, 2000, 2000, memory=Memory(alignment=64)))
    assert found.offsets == {"b0": 0, "b1": 2048, "b2": 0}
    assert peak_of(found) == (4048, 4048)


@pytest.mark.parametrize(
    ("problem", "nbytes"),
    [
        (chain(10, 20, 100, 40, 50, 50), 140),
        (fan_out(), 90),
        (residual_network(), 3 * 16384),
    ],
)
def test_known_networks_reach_their_bound(problem: Problem, nbytes: int) -> None:
    assert peak_of(planned(problem)) == (nbytes, nbytes)


def test_two_outputs_of_the_network_stay_to_the_end() -> None:
    problem = Problem(
        buffers=(
            Buffer(name="x", nbytes=100, first_content=FirstContent.PRESENT),
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
    lives = {r.buffer: (r.begin, r.end) for r in planned(problem).residencies}
    assert lives == {"x": (0, 1), "first": (0, 3), "mid": (1, 3), "second": (2, 3)}


def test_operations_are_put_behind_what_they_read() -> None:
    problem = chain(4, 4, 4)
    (engine,) = problem.engines
    backwards = replace(problem, ops=problem.ops[::-1], engines=(replace(engine, in_order=False),))
    assert planned(backwards).order == ("op0", "op1", "op2")
    assert planned(problem).order == ("op0", "op1", "op2")


def test_nothing_is_planned_well() -> None:
    empty = planned(Problem(buffers=(), ops=()))
    assert (empty.makespan_ticks, empty.residencies) == (0, ())
    assert planned(Problem(buffers=(Buffer(name="unused", nbytes=9),), ops=())).residencies == ()


def test_parts_of_one_buffer_and_views_of_it_have_one_place() -> None:
    problem = Problem(
        buffers=(
            Buffer(name="whole", nbytes=100),
            Buffer(name="upper", nbytes=60, view_of="whole", view_offset=40),
            Buffer(name="lower", nbytes=40, view_of="whole"),
            Buffer(name="out", nbytes=10),
        ),
        ops=(
            Op(name="1", writes=("lower",)),
            Op(name="2", writes=("upper",)),
            Op(name="3", reads=("whole",), writes=("out",)),
        ),
    )
    lives = {r.buffer: (r.begin, r.end, r.nbytes) for r in planned(problem).residencies}
    assert lives == {"whole": (0, 3, 100), "out": (2, 3, 10)}


def test_a_view_may_come_before_its_whole_which_says_where_it_lies() -> None:
    problem = Problem(
        buffers=(
            Buffer(name="upper", nbytes=60, view_of="whole", view_offset=40),
            Buffer(name="lower", nbytes=40, view_of="whole"),
            Buffer(name="out", nbytes=10),
            Buffer(name="whole", nbytes=100, memory="far", pinned_at=512),
        ),
        ops=(
            Op(name="1", writes=("lower",)),
            Op(name="2", writes=("upper",)),
            Op(name="3", reads=("whole",), writes=("out",)),
        ),
        memories=(Memory(), Memory(name="far")),
    )
    found = planned(problem)
    assert found.offsets == {"whole": 512, "out": 0}
    assert {(r.buffer, r.memory) for r in found.residencies} == {
        ("whole", "far"),
        ("out", "memory"),
    }


def test_a_view_is_backed_where_its_whole_is() -> None:
    view = Buffer(name="v", nbytes=4, view_of="w", first_content=FirstContent.BACKED)
    engines = (Engine(name="e"), Engine(name="in", kind=EngineKind.DMA))
    read = Transfer(engine="in", latency_ticks=1, nbytes_per_tick=4)
    near = Memory(name="near", backing="dram", read=read, save=read)
    for memory, is_sound in (("near", True), ("dram", False)):
        problem = Problem(
            buffers=(view, Buffer(name="w", nbytes=8, memory=memory)),
            ops=(Op(name="1", reads=("v",)),),
            memories=(Memory(name="first"), near, Memory(name="dram")),
            engines=engines,
        )
        if is_sound:
            assert [t.buffer for t in planned(problem).transfers] == ["w"]
            continue
        with pytest.raises(UserError, match="buffer v: backed, but dram has no backing memory"):
            plan(problem)


def test_a_group_shares_one_offset_and_a_pin_holds() -> None:
    problem = Problem(
        buffers=(
            Buffer(name="a", nbytes=100, group="in place"),
            Buffer(name="b", nbytes=80, group="in place"),
            Buffer(name="c", nbytes=80, pinned_at=1024),
        ),
        ops=(
            Op(name="1", writes=("a",)),
            Op(name="2", reads=("a",), writes=("b",)),
            Op(name="3", reads=("b",), writes=("c",)),
        ),
    )
    assert planned(problem).offsets == {"a": 0, "c": 1024}


def test_too_little_memory_is_infeasible_with_its_reason() -> None:
    found = plan(chain(10, 20, 100, 10, memory=Memory(alignment=1, capacity_nbytes=110)))
    assert isinstance(found, Infeasible)
    assert found.why == "operation op2 needs 120 bytes of memory at once, which has 110"
    kept = Problem(
        buffers=tuple(Buffer(name=n, nbytes=60, needed_after=True) for n in "ab"),
        ops=tuple(Op(name=n, writes=(n,)) for n in "ab"),
        memories=(Memory(alignment=1, capacity_nbytes=100),),
    )
    found = plan(kept)
    assert isinstance(found, Infeasible)
    assert found.why == ("no plan was found within the 100 bytes of memory; the best one takes 120")


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Networks: every operation reads some earlier buffers and writes one or two new ones."""
    memory = Memory(
        alignment=draw(st.sampled_from([1, 16, 256])),
        reserved=draw(st.sampled_from([(), ((0, 100),), ((300, 512), (900, 1))])),
    )
    buffers = [
        Buffer(name="in", nbytes=draw(st.integers(0, 900)), first_content=FirstContent.PRESENT)
    ]
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
    return Problem(buffers=tuple(buffers), ops=tuple(ops), memories=(memory,))


@settings(max_examples=examples(60), deadline=None)
@given(problems())
def test_every_plan_is_valid_and_no_better_than_the_bound(problem: Problem) -> None:
    found = planned(problem)
    peak, bound = peak_of(found)
    assert peak >= bound
    assert found.order == tuple(op.name for op in problem.ops)
    assert Problem.from_json(problem.to_json()) == problem
    assert Plan.from_json(found.to_json()) == found
    assert plan(problem) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("[]", "a problem is a JSON object, not []"),
        ('{"schema": 1}', "a problem of schema 1; this tilefarm reads 2 to 3"),
        ('{"schema": 3, "ops": []}', "problem lacks 'buffers'"),
        ('{"schema": 3, "buffers": [], "ops": [], "steps": []}', "problem has no 'steps'"),
        (
            '{"schema": 3, "buffers": [{"name": "x", "nbytes": "9"}], "ops": []}',
            "problem.buffers[0].nbytes: a whole number is wanted, not '9'",
        ),
        (
            '{"schema": 3, "buffers": [{"name": "x", "nbytes": 9, "first_content": "old"}]}',
            "problem lacks 'ops'",
        ),
        (
            '{"schema": 3, "buffers": [], "ops": [{"name": "a", "duration_ticks": NaN}]}',
            "not JSON: NaN is not a number",
        ),
        (
            '{"schema": 3, "buffers": [], "ops": [{"name": "a", "reads": "x"}]}',
            "problem.ops[0].reads: a list is wanted, not 'x'",
        ),
        (
            '{"schema": 3, "buffers": [], "ops": [], "memories": [{"reserved": [[1]]}]}',
            "problem.memories[0].reserved[0]: 2 values are wanted, not 1",
        ),
        (
            '{"schema": 3, "buffers": [], "ops": [' + "1," * 200_000 + "1]}",
            "problem.ops: 200001 rows, 200000 at most",
        ),
    ],
)
def test_a_document_that_is_no_problem_is_told_with_its_place(text: str, words: str) -> None:
    with pytest.raises(UserError) as error:
        Problem.from_json(text)
    assert error.value.what == words


def test_what_is_kept_has_a_place_where_nothing_runs() -> None:
    kept = Buffer(name="x", nbytes=8, first_content=FirstContent.PRESENT, needed_after=True)
    for mode in (Mode.FEASIBLE, Mode.BEST):
        problem = Problem(buffers=(kept, replace(kept, name="y")), ops=(), memories=(PLAIN,))
        found = plan(problem, mode=mode)
        assert isinstance(found, Plan)
        assert validate(problem, found) is GOOD
        assert sorted(found.offsets.values()) == [0, 8]


def test_parts_are_written_after_all_that_read_what_they_held() -> None:
    """`high` is written by the second writer since the reader; that reads it all the same."""
    problem = Problem(
        buffers=(
            Buffer(name="whole", nbytes=8, first_content=FirstContent.PRESENT),
            Buffer(name="low", nbytes=4, view_of="whole"),
            Buffer(name="high", nbytes=4, view_of="whole", view_offset=4),
        ),
        ops=(
            Op(name="reader", reads=("whole",), duration_ticks=9),
            Op(name="first", engine="b", writes=("low",)),
            Op(name="second", engine="c", writes=("high",)),
            Op(name="changes", engine="c", reads=("high",), writes=("high",)),
            Op(name="third", engine="b", writes=("high",)),
        ),
        memories=(PLAIN,),
        engines=tuple(Engine(name=name, in_order=False) for name in ("a", "b", "c")),
    )
    begins = {each.op: each.begin for each in planned(problem).ops}
    assert begins == {"reader": 0, "first": 9, "second": 9, "changes": 10, "third": 11}


def test_what_may_not_leave_may_come_for_the_first_time() -> None:
    way = Transfer(engine="dma")
    problem = Problem(
        buffers=(
            Buffer(name="x", nbytes=8, first_content=FirstContent.BACKED, spillable=False),
            Buffer(name="y", nbytes=8),
        ),
        ops=(Op(name="op", reads=("x",), writes=("y",)),),
        memories=(
            Memory(alignment=1, backing="far", save=way, read=way),
            Memory(name="far"),
        ),
        engines=(Engine(name="e"), Engine(name="dma", kind=EngineKind.DMA)),
    )
    found = planned(problem)
    assert [each.buffer for each in found.transfers] == ["x"]
    extra = replace(found.transfers[0], kind=TransferKind.SAVE, begin=1, end=2)
    assert validate(problem, replace(found, transfers=(*found.transfers, extra))).name == "transfer"
