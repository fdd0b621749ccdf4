"""What npu_compiler's tests pin: its graphs, with the order, addresses and times that they expect.

The graphs are those of its lit tests (A) and of its unit tests of 2022 (M, G, B), reduced to what
matters here: sizes, who reads and writes what, and engines.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import pytest

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
    TransferKind,
    plan,
    validate,
)
from driver.memory.feasible.actions import ActionKind, Schedule
from driver.memory.feasible.graph import graph_of
from driver.memory.feasible.list_scheduler import list_schedule
from driver.memory.feasible.residents import Residents
from driver.memory.feasible.timeline import Timeline
from driver.memory.instance import instance_of

CMX_NBYTES = 1_474_560
ENGINES = (
    Engine(name="I", kind=EngineKind.DMA, in_order=False),
    Engine(name="O", kind=EngineKind.DMA, in_order=False),
    Engine(name="D"),
    Engine(name="S"),
)


def scratchpad(nbytes: int, *, alignment: int = 64) -> tuple[Memory, Memory]:
    fast = Memory(
        name="fast",
        capacity_nbytes=nbytes,
        alignment=alignment,
        backing="dram",
        save=Transfer(engine="O"),
        read=Transfer(engine="I"),
    )
    return fast, Memory(name="dram")


def graph(text: str, sizes: dict[str, int], capacity: int = CMX_NBYTES) -> Problem:
    """One operation a line: `engine reads -> writes`, named by their numbers."""
    ops = []
    for number, line in enumerate(text.strip().splitlines()):
        left, right = line.split("->")
        engine, *reads = left.split()
        ops.append(
            Op(name=str(number), engine=engine, reads=tuple(reads), writes=tuple(right.split()))
        )
    return Problem(
        buffers=tuple(Buffer(name=name, nbytes=nbytes) for name, nbytes in sizes.items()),
        ops=tuple(ops),
        memories=scratchpad(capacity),
        engines=ENGINES,
    )


def feasible(problem: Problem) -> Plan:
    found = plan(problem, mode=Mode.FEASIBLE)
    assert isinstance(found, Plan), found
    assert validate(problem, found) is GOOD
    return found


@dataclass(frozen=True)
class Listed:
    """What the list scheduler alone does: names in the order of their begin, and its makespan."""

    order: tuple[str, ...]
    makespan_ticks: int


def listed(problem: Problem) -> Listed:
    instance = instance_of(problem)
    found = list_schedule(problem, graph_of(problem, instance, range(len(instance.steps))))
    assert found is not None
    names = []
    is_late = {ActionKind.PREFETCHED: False}
    for each in sorted(found.actions, key=lambda a: (a.begin, is_late.get(a.kind, True), a.step)):
        move = {"save": "W", "read": "R"}.get(each.kind.value)
        names.append(f"{move}({instance.buffers[each.buffer].name})" if move else str(each.step))
    return Listed(tuple(names), found.makespan_ticks)


def offsets(found: Plan) -> list[tuple[str, int]]:
    """(buffer, offset) of all stays in the fast memory, in time."""
    stays = [r for r in found.residencies if r.reason is not Reason.SAVED]
    return [(r.buffer, r.offset) for r in sorted(stays, key=lambda r: (r.begin, r.offset))]


def edges(found: Plan) -> set[tuple[str, str]]:
    """Who waits for whom because of bytes, by names as `listed` has them."""
    names = [each.op for each in found.ops]
    kinds = {TransferKind.SAVE: "W", TransferKind.READ: "R"}
    names += [f"{kinds[each.kind]}({each.buffer})" for each in found.transfers]
    assert found.reuse_edges is not None
    return {(names[early], names[late]) for early, late in found.reuse_edges}


def equal(names: str, nbytes: int) -> dict[str, int]:
    return dict.fromkeys(names.split(), nbytes)


CHAIN = "D ->a\nD a->b\nD b->c\nD c->"
TWO_OUTPUTS = "I ->b0\nI ->b3\nD b0->b1 b2\nD b1 b3->b4\nD b2 b4->b5\nO b5->"
SPILLING = "I ->in\nI ->b0\nD in->b1\nD b1 b0->b2\nD in b2->b3\nO b3->"


def test_a1_a_chain_alternates_between_two_places() -> None:
    found = feasible(graph(CHAIN, equal("a b c", 512)))
    assert offsets(found) == [("a", 0), ("b", 512), ("c", 0)]
    assert found.peak_nbytes("fast") == 1024


def test_a2_a_reserved_range_moves_everything_up() -> None:
    problem = graph(CHAIN, equal("a b c", 512))
    fast = replace(problem.memories[0], reserved=((0, 512),))
    found = feasible(replace(problem, memories=(fast, problem.memories[1])))
    assert offsets(found) == [("a", 512), ("b", 1024), ("c", 512)]
    assert found.peak_nbytes("fast") == 1536


def test_a1d_a2d_alignment_rounds_up() -> None:
    problem = graph(CHAIN, equal("a b c", 2000))
    assert offsets(feasible(problem)) == [("a", 0), ("b", 2048), ("c", 0)]
    fast = replace(problem.memories[0], reserved=((0, 512),))
    found = feasible(replace(problem, memories=(fast, problem.memories[1])))
    assert offsets(found) == [("a", 512), ("b", 2560), ("c", 512)]


def test_a3_two_outputs_lie_side_by_side() -> None:
    problem = graph("D ->a\nD ->b", equal("a b", 512))
    kept = tuple(replace(b, needed_after=True) for b in problem.buffers)
    found = feasible(replace(problem, buffers=kept))
    assert offsets(found) == [("a", 0), ("b", 512)]
    assert found.peak_nbytes("fast") == 1024


def test_a4_an_input_leaves_and_comes_back() -> None:
    problem = graph(SPILLING, equal("in b0 b1 b2 b3", 442_368))
    assert listed(problem) == Listed(("0", "1", "2", "W(in)", "3", "R(in)", "4", "5"), 7)
    found = feasible(problem)
    assert found.peak_nbytes("fast") == 1_327_104
    assert found.makespan_ticks <= 7


def test_a5_the_second_output_leaves_and_a_load_waits() -> None:
    problem = graph(TWO_OUTPUTS, equal("b0 b1 b2 b3 b4 b5", 442_368))
    assert listed(problem) == Listed(("0", "2", "W(b2)", "1", "3", "R(b2)", "4", "5"), 8)
    found = feasible(problem)
    assert found.peak_nbytes("fast") == 1_327_104
    assert found.makespan_ticks <= 8


def test_a6_parts_leave_and_come_back_as_the_whole() -> None:
    """In a graph of ours of that form: eight buffers, one of them written in two halves."""
    text = (
        "I ->in\nD in->low\nD in->high\nD in->a\nD a->b\nD a b->d\n"
        "D d m->r0\nD low r0->r1\nD high r1->r2\nO r2->"
    )
    problem = graph(text, equal("in m a b d r0 r1 r2", 393_216))
    halves = tuple(
        Buffer(name=name, nbytes=196_608, view_of="m", view_offset=offset)
        for name, offset in (("low", 0), ("high", 196_608))
    )
    found = feasible(replace(problem, buffers=(*problem.buffers, *halves)))
    assert [(each.buffer, each.kind) for each in found.transfers] == [
        ("m", TransferKind.SAVE),
        ("m", TransferKind.READ),
    ]
    assert found.peak_nbytes("fast") == 1_179_648


def test_a7_a_result_waits_for_the_bytes_of_another() -> None:
    problem = graph("I ->b0\nD b0->b1\nO b1->\nD b0->b2\nO b2->", equal("b0 b1 b2", 602_112))
    found = feasible(problem)
    assert offsets(found) == [("b0", 0), ("b1", 602_112), ("b2", 602_112)]
    assert found.peak_nbytes("fast") == 1_204_224
    assert not found.transfers
    assert listed(problem).makespan_ticks == found.makespan_ticks == 5
    assert ("2", "3") in edges(found)


def test_a8_addresses_of_what_leaves_and_comes_back() -> None:
    problem = graph(SPILLING, equal("in b0 b1 b2 b3", 432_000))
    found = feasible(problem)
    assert offsets(found) == [
        ("in", 0), ("b0", 432_000), ("b1", 864_000), ("b2", 0), ("in", 432_000), ("b3", 864_000),
    ]  # fmt: skip
    assert found.peak_nbytes("fast") == 1_296_000
    assert listed(problem).makespan_ticks == 7
    assert {early for early, late in edges(found) if late == "W(in)"} == {"0"}


def test_a9_a_transfer_of_all_ports_takes_them_all() -> None:
    problem = graph(
        "I ->i\nI ->w\nI ->t\nD i w t->o\nO o->", {"i": 4096, "w": 36864, "t": 1024, "o": 8192}
    )
    two = tuple(replace(e, instances=2 if e.name in "IO" else 1) for e in problem.engines)
    ops = tuple(replace(op, takes_all=op.name in ("0", "4")) for op in problem.ops)
    found = feasible(replace(problem, ops=ops, engines=two))
    assert found.offsets == {"w": 0, "o": 36_864, "i": 45_056, "t": 49_152}
    assert found.peak_nbytes("fast") == 50_176
    assert {each.op: each.instance for each in found.ops} == {
        "0": -1, "1": 0, "2": 1, "3": 0, "4": -1,
    }  # fmt: skip


def test_a12_two_chains_run_beside_each_other() -> None:
    text = "I ->i0\nI ->i1\nD i0->m0\nS m0->r0\nO r0->\nD i1->m1\nS m1->r1\nO r1->"
    problem = graph(text, equal("i0 m0 r0 i1 m1 r1", 147_456), 4 * 147_456)
    ticks = {"I": 10, "D": 40, "S": 30, "O": 10}
    problem = replace(
        problem, ops=tuple(replace(op, duration_ticks=ticks[op.engine]) for op in problem.ops)
    )
    found = feasible(problem)
    assert found.makespan_ticks == 130
    assert found.peak_nbytes("fast") == 589_824
    assert not found.transfers
    order = [op.engine for each in found.ops for op in problem.ops if op.name == each.op]
    assert sorted(order[3:5]) == ["D", "S"]
    assert order[:3] + order[5:] == ["I", "I", "D", "O", "S", "O"]


def tasks(
    text: str,
    nbytes: dict[str, int] | None = None,
    *,
    capacity: int,
    ticks: dict[str, int] | None = None,
    instances: int = 100,
    in_order: bool = False,
) -> Problem:
    """Operations that take bytes only while they run: `s>u s>v` says who waits for whom."""
    after: dict[str, list[str]] = {}
    for edge in text.split():
        first, *then = edge.split(">")
        after.setdefault(first, [])
        for each in then:
            after.setdefault(each, []).append(first)
    needs = nbytes or dict.fromkeys(after, 1)
    return Problem(
        buffers=tuple(Buffer(name=name, nbytes=needs[name]) for name in after),
        ops=tuple(
            Op(name=n, duration_ticks=(ticks or {}).get(n, 1), writes=(n,), after=tuple(first))
            for n, first in after.items()
        ),
        memories=(Memory(name="bin", capacity_nbytes=capacity, alignment=1),),
        engines=(Engine(name="any", instances=instances, in_order=in_order),),
    )


def begins(found: Plan) -> dict[str, int]:
    return {each.op: each.begin for each in found.ops}


def test_m1_a_chain_goes_step_by_step() -> None:
    text = "u v w x u>v v>w w>x"
    assert begins(feasible(tasks(text, capacity=10))) == {"u": 0, "v": 1, "w": 2, "x": 3}
    needs = dict.fromkeys("uvwx", 20)
    refused = plan(tasks(text, needs, capacity=10), mode=Mode.FEASIBLE)
    assert refused == Infeasible(op="u", memory="bin", demand_nbytes=20, capacity_nbytes=10)
    full = tasks(text, capacity=10)
    (bin_,) = full.memories
    full = replace(full, memories=(replace(bin_, reserved=((0, 10),)),))
    assert isinstance(plan(full, mode=Mode.FEASIBLE), Infeasible), "a memory of no bytes"


@pytest.mark.parametrize(
    ("text", "capacity", "expected"),
    [
        ("s>u s>v s>w s>x", 100, {"s": 0, "u": 1, "v": 1, "w": 1, "x": 1}),  # M2
        ("s>u s>v s>w s>x", 2, {"s": 0, "u": 1, "v": 1, "w": 2, "x": 2}),
        ("s>u s>v s>w u>x v>x w>x", 2, {"s": 0, "u": 1, "v": 1, "w": 2, "x": 3}),  # M4
    ],
)
def test_m2_m4_a_fan_out_is_as_wide_as_the_memory(
    text: str, capacity: int, expected: dict[str, int]
) -> None:
    assert begins(feasible(tasks(text, capacity=capacity))) == expected


@pytest.mark.parametrize(("capacity", "makespan"), [(2, 5), (1, 7)])
def test_m3_two_linked_diamonds(capacity: int, makespan: int) -> None:
    text = "a>b a>c b>d c>d d>e d>f e>g f>g"
    assert feasible(tasks(text, capacity=capacity)).makespan_ticks == makespan


def test_m5_fragmentation_costs_a_step() -> None:
    """A contiguous memory of 2022 gives a, b, d their bytes in this order: then c, wherever its 5
    of 10 lie, waits for those of b. Where bytes are only counted c begins at 2; so it does here,
    where addresses follow consumers, as the scheduler of 2024 gives them.
    """
    text, needs = "s>a s>b s>d a>c d>c", {"s": 1, "a": 3, "b": 3, "d": 4, "c": 5}
    problem = tasks(text, needs, capacity=10, ticks={"b": 3})
    found = feasible(problem)
    assert (begins(found)["c"], found.makespan_ticks) == (2, 4)

    places = {"s": 0, "a": 0, "b": 3, "d": 6}
    for place in range(6):
        pins = {**places, "c": place}
        buffers = tuple(replace(b, pinned_at=pins.get(b.name)) for b in problem.buffers)
        apart = feasible(replace(problem, buffers=buffers))
        assert (begins(apart)["c"], apart.makespan_ticks) == (4, 5)


def test_m9_what_an_operation_demands_is_all_it_uses_and_loads_that_is_not_there() -> None:
    text = "D ->In\nI ->ain\nI ->bin\nD In ain->A\nD In A bin->B"
    sizes = {"In": 3, "A": 3, "ain": 4, "B": 2, "bin": 2}
    problem = replace(graph(text, sizes, 10), memories=scratchpad(10, alignment=1))
    instance = instance_of(problem)
    steps = graph_of(problem, instance, instance.arranged(lambda at: at))
    schedule = Schedule()
    residents = Residents(problem, steps, schedule)
    timeline = Timeline(problem, steps, schedule, residents)
    timeline.place(0)
    assert residents.allocate()

    def demand(step: int) -> list[int]:
        return sorted(instance.buffers[each].nbytes for each in timeline.need(step))

    assert demand(3) == [3, 4]
    assert demand(4) == [2, 2, 3]
    timeline.place(3)
    assert residents.allocate()
    assert demand(4) == [2, 2]


def test_m8_what_an_operation_waits_for() -> None:
    text = "D ->In\nI ->wa\nI ->wb\nI ->wc\nD In wa->A\nD In A wb->B\nD In A B wc->C"
    instance = instance_of(graph(text, equal("In wa wb wc A B C", 1)))
    waits = {name: instance.steps[at].before for name, at in (("A", 4), ("B", 5), ("C", 6))}
    assert {name: len(before) for name, before in waits.items()} == {"A": 2, "B": 3, "C": 4}
    loads = {1, 2, 3}
    assert [len(set(before) - loads) for before in waits.values()] == [1, 2, 3]


def test_m10_loads_come_with_those_that_need_them_and_fit() -> None:
    """B takes 2 bytes, as in the unit test: with more it had no room beside what it reads."""
    text = "I ->ain\nI ->bin\nI ->cin\nD ain->A\nD A C bin->B\nD cin->C"
    problem = graph(text, {"ain": 2, "bin": 4, "cin": 2, "A": 2, "B": 2, "C": 2}, 10)
    memories = scratchpad(10, alignment=1)
    many = tuple(replace(e, instances=3, in_order=False) for e in problem.engines)
    found = feasible(replace(problem, memories=memories, engines=many))
    at = begins(found)
    assert (at["0"], at["2"], at["3"], at["5"]) == (0, 0, 1, 1)
    assert (at["1"], at["4"]) == (2, 3)


def in_place(text: str, sizes: dict[str, int]) -> Plan:
    """The plan in 10 bytes of a graph whose b is in place of a."""
    problem = graph(text, sizes)
    buffers = tuple(replace(b, group="ab" if b.name in "ab" else "") for b in problem.buffers)
    return feasible(replace(problem, buffers=buffers, memories=scratchpad(10, alignment=1)))


def place_of(found: Plan, buffer: str, op: str) -> int:
    """Where a buffer lies as an operation runs."""
    run = next(each for each in found.ops if each.op == op)
    return next(
        r.offset
        for r in found.residencies
        if r.buffer == buffer and r.begin <= run.begin and run.end <= r.end
    )


def test_m13_a_result_in_place_has_the_address_of_its_operand() -> None:
    text = "I ->w1\nI ->w2\nD w1->a\nD w2 a->b\nD w1 b->c"
    found = in_place(text, {"w1": 5, "w2": 4, "a": 5, "b": 5, "c": 0})
    assert len(found.ops) == 5
    assert {each.buffer for each in found.transfers} == {"w1"}
    assert place_of(found, "a", "2") == place_of(found, "a", "3")


def test_m14_so_it_has_though_it_leaves_and_comes_back() -> None:
    text = "I ->w1\nI ->w2\nD w1->a\nD w2 a->b\nD w1 b->c\nI ->w3\nD c w3->d\nD b d->f"
    sizes = {"w1": 5, "w2": 4, "a": 5, "b": 5, "c": 0, "w3": 5, "d": 4, "f": 1}
    found = in_place(text, sizes)
    assert len(found.ops) == 8
    moved = [each.kind for each in found.transfers if each.buffer == "a"]
    assert moved == [TransferKind.SAVE, TransferKind.READ]
    assert place_of(found, "a", "2") == place_of(found, "a", "3")


@pytest.mark.parametrize(
    ("text", "highest"),
    [
        ("D ->a\nD a->b\nD a->c\nD b c->d\nD d->", 30),
        ("D ->a\nD a->b\nD b->c\nD c->d\nD d->", 20),
        ("D ->a\nD a->b\nD a b->c\nD c->", 30),
        ("D ->a\nD a->b\nD a->c\nD a->d\nD a->e\nD b c d e->", 60),
    ],
)
def test_g1_high_water_of_small_graphs(text: str, highest: int) -> None:
    problem = graph(text, equal("a b c d e", 10), 1000)
    used = {name for op in problem.ops for name in (*op.reads, *op.writes)}
    problem = replace(
        problem,
        buffers=tuple(b for b in problem.buffers if b.name in used),
        memories=scratchpad(1000, alignment=1),
    )
    assert feasible(problem).peak_nbytes("fast") <= highest


def tree(degree: int, depth: int) -> str:
    """Its root is a leaf's only ancestor where the depth is 1."""
    names = [[f"{level}.{k}" for k in range(degree**level)] for level in range(depth + 1)]
    return " ".join(
        f"{above[k // degree]}>{name}"
        for above, below in itertools.pairwise(names)
        for k, name in enumerate(below)
    )


@pytest.mark.parametrize("mode", [Mode.FEASIBLE, Mode.BEST])
@pytest.mark.parametrize(
    ("text", "barriers", "last"),
    [
        (tree(100, 1), 2, 50),
        (tree(100, 1), 100, 1),
        (tree(1, 100), 1, 100),
        (tree(1, 100), 2, 100),
        (tree(2, 3), 2, 7),
        (tree(2, 3), 8, 3),
    ],
)
def test_b1_so_many_run_as_there_are_barriers(
    text: str, barriers: int, last: int, mode: Mode
) -> None:
    """When the last one begins; a barrier with 100 slots is 100 of one slot."""
    problem = replace(tasks(text, capacity=0), barriers=barriers)
    found = plan(problem, mode=mode, effort=1000)
    assert isinstance(found, Plan)
    assert validate(problem, found) is GOOD
    assert max(begins(found).values()) == last
    instead = tasks(text, capacity=0, instances=barriers)
    assert feasible(instead).makespan_ticks == last + 1


def test_what_is_present_and_what_is_backed_needs_no_load() -> None:
    problem = graph("D x w->y\nD y->z", equal("x w y z", 64))
    contents = {"x": FirstContent.PRESENT, "w": FirstContent.BACKED}
    buffers = tuple(
        replace(b, first_content=contents.get(b.name, b.first_content)) for b in problem.buffers
    )
    found = feasible(replace(problem, buffers=buffers))
    assert [(each.buffer, each.kind) for each in found.transfers] == [("w", TransferKind.READ)]
    assert found.extra_nbytes == 0
