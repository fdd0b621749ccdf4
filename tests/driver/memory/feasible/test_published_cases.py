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
from driver.memory.linear_scan import BufferRequest, LinearScan

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
    times = {each.op: each for each in found.ops}
    assert times["2"].end <= times["3"].begin


def test_a8_addresses_of_what_leaves_and_comes_back() -> None:
    problem = graph(SPILLING, equal("in b0 b1 b2 b3", 432_000))
    found = feasible(problem)
    assert offsets(found) == [
        ("in", 0), ("b0", 432_000), ("b1", 864_000), ("b2", 0), ("in", 432_000), ("b3", 864_000),
    ]  # fmt: skip
    assert found.peak_nbytes("fast") == 1_296_000
    assert listed(problem).makespan_ticks == 7
    save = next(each for each in found.transfers if each.kind is TransferKind.SAVE)
    assert save.begin == next(each.end for each in found.ops if each.op == "0")


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


def test_m5_fragmentation_costs_a_step_unless_addresses_follow_consumers() -> None:
    """In the order a, b, d the bytes of a and d lie apart, and c waits for b: to tick 4, end 5.

    What the scheduler places by the number of its consumers lies so that c begins at 2, end 4, as
    it does where bytes are only counted.
    """
    needs = {"a": 3, "b": 3, "d": 4}
    scan = LinearScan(10)
    assert scan.allocate_all([BufferRequest(name, nbytes) for name, nbytes in needs.items()])
    scan.free("a")
    scan.free("d")
    assert scan.free_nbytes == 7
    assert not scan.fits([BufferRequest("c", 5)])
    scan.free("b")
    assert scan.fits([BufferRequest("c", 5)])

    problem = tasks("s>a s>b s>d a>c d>c", {**needs, "s": 1, "c": 5}, capacity=10, ticks={"b": 3})
    found = feasible(problem)
    assert (begins(found)["c"], found.makespan_ticks) == (2, 4)


def test_m9_what_an_operation_demands_is_its_own_and_what_it_loads() -> None:
    """B is only asked once A is placed, and then A is there: its published demand, {2, 2, 3}, is
    that of an operation that is not ready.
    """
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
    text = "I ->ain\nI ->bin\nI ->cin\nD ain->A\nD bin->B\nD cin->C"
    problem = graph(text, {"ain": 2, "bin": 4, "cin": 2, "A": 2, "B": 4, "C": 2}, 10)
    memories = scratchpad(10, alignment=1)
    many = tuple(replace(e, instances=3, in_order=False) for e in problem.engines)
    found = feasible(replace(problem, memories=memories, engines=many))
    at = begins(found)
    assert (at["0"], at["2"], at["3"], at["5"]) == (0, 0, 1, 1)
    assert at["1"] == 2


def test_m13_a_result_in_place_keeps_the_address_though_others_leave() -> None:
    text = "I ->w1\nI ->w2\nD w1->a\nD w2 a->b\nD w1 b->"
    problem = graph(text, {"w1": 5, "w2": 4, "a": 5, "b": 5})
    buffers = tuple(replace(b, group="ab" if b.name in "ab" else "") for b in problem.buffers)
    memories = scratchpad(10, alignment=1)
    found = feasible(replace(problem, buffers=buffers, memories=memories))
    assert {each.buffer for each in found.transfers} == {"w1"}
    assert len({r.offset for r in found.residencies if r.buffer == "a"}) == 1


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


def tree(depth: int) -> str:
    names = [[f"{level}.{k}" for k in range(2**level)] for level in range(1, depth + 1)]
    edges = [" ".join(names[0])]
    for above, below in itertools.pairwise(names):
        edges += [f"{above[k // 2]}>{name}" for k, name in enumerate(below)]
    return " ".join(edges)


STAR = " ".join(f"leaf{k}" for k in range(100))
LINE = " ".join(["n0", *(f"n{k}>n{k + 1}" for k in range(99))])


@pytest.mark.parametrize(
    ("text", "barriers", "slots", "steps"),
    [
        (STAR, 2, 1, 50),
        (STAR, 100, 1, 1),
        (STAR, 1, 100, 1),
        (LINE, 1, 1, 100),
        (tree(3), 2, 1, 7),
        (tree(3), 8, 1, 3),
    ],
)
def test_b1_barrier_slots_are_instances(text: str, barriers: int, slots: int, steps: int) -> None:
    problem = tasks(text, capacity=0, instances=barriers * slots)
    assert feasible(problem).makespan_ticks == steps


def test_what_is_present_and_what_is_backed_needs_no_load() -> None:
    problem = graph("D x w->y\nD y->z", equal("x w y z", 64))
    contents = {"x": FirstContent.PRESENT, "w": FirstContent.BACKED}
    buffers = tuple(
        replace(b, first_content=contents.get(b.name, b.first_content)) for b in problem.buffers
    )
    found = feasible(replace(problem, buffers=buffers))
    assert [(each.buffer, each.kind) for each in found.transfers] == [("w", TransferKind.READ)]
    assert found.extra_nbytes == 0
