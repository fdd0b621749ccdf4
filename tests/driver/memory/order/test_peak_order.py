"""Orders of least peak: what trying all orders finds, never worse than given, alike every time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from driver.benchmarks.memory.random_cells import CELL_KINDS, random_wires
from driver.memory.order import LiveBuffer, OpGraph, PeakOrder, least_peak_order


def random_graph(seed: int, most: int = 7) -> OpGraph:
    """Operations with a result each, and buffers that several of them use in any order."""
    draw = random.Random(seed)
    count = draw.randint(1, most)
    density = draw.choice((0.15, 0.3, 0.5))
    readers = [
        {op, *(later for later in range(op + 1, count) if draw.random() < density)}
        for op in range(count)
    ]
    results = [
        LiveBuffer(nbytes=draw.randint(0, 20), users=frozenset(users), to_end=draw.random() < 0.1)
        for users in readers
    ]
    shared = [
        LiveBuffer(
            nbytes=draw.randint(1, 20),
            users=frozenset(draw.sample(range(count), draw.randint(1, min(3, count)))),
            from_begin=draw.random() < 0.5,
            to_end=draw.random() < 0.3,
        )
        for _ in range(draw.randint(0, 3))
    ]
    waits_for = tuple(
        frozenset(before for before in range(op) if op in readers[before]) for op in range(count)
    )
    return OpGraph(waits_for=waits_for, buffers=(*results, *shared))


def all_orders(graph: OpGraph, begun: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    if len(begun) == len(graph.waits_for):
        yield begun
    for op, before in enumerate(graph.waits_for):
        if op not in begun and before <= set(begun):
            yield from all_orders(graph, (*begun, op))


def peak_by_definition(graph: OpGraph, order: Sequence[int]) -> int:
    """Every buffer at every time, from what the records say."""
    at = {op: place for place, op in enumerate(order)}
    return max(
        sum(
            buffer.nbytes
            for buffer in graph.buffers
            if (buffer.from_begin or min(at[op] for op in buffer.users) <= now)
            and (buffer.to_end or max(at[op] for op in buffer.users) >= now)
        )
        for now in range(len(order))
    )


def is_possible(graph: OpGraph, order: Sequence[int]) -> bool:
    return sorted(order) == list(range(len(graph.waits_for))) and all(
        graph.waits_for[op] <= set(order[:at]) for at, op in enumerate(order)
    )


def branches(*nbytes: int) -> OpGraph:
    """For each of `nbytes` two operations, the second of which leaves 100 bytes, and one that reads
    what they all leave; in the order that a file has them: level by level.
    """
    count = len(nbytes)
    first, second, last = range(count), range(count, 2 * count), 2 * count
    return OpGraph(
        waits_for=(
            *(frozenset[int]() for _ in first),
            *(frozenset({op}) for op in first),
            frozenset(second),
        ),
        buffers=(
            *(
                LiveBuffer(nbytes=each, users=frozenset({a, b}))
                for each, a, b in zip(nbytes, first, second, strict=True)
            ),
            *(LiveBuffer(nbytes=100, users=frozenset({op, last})) for op in second),
            LiveBuffer(nbytes=100, users=frozenset({last}), to_end=True),
        ),
    )


def chain_of_cells(cells: int) -> OpGraph:
    """Each reads what the one before made, by three branches of two operations, and joins them."""
    draw = random.Random(0)
    reads: list[tuple[int, ...]] = [()]
    for _ in range(cells):
        begin, made = len(reads) - 1, []
        for _ in range(3):
            reads += [(begin,), (len(reads),)]
            made.append(len(reads) - 1)
        reads.append(tuple(made))
    users = [
        {op, *(o for o in range(op, min(op + 8, len(reads))) if op in reads[o])}
        for op in range(len(reads))
    ]
    return OpGraph(
        waits_for=tuple(map(frozenset, reads)),
        buffers=tuple(
            LiveBuffer(nbytes=draw.randint(1, 1_000), users=frozenset(each)) for each in users
        ),
    )


def test_no_order_needs_less() -> None:
    better = 0
    for seed in range(300):
        graph = random_graph(seed)
        found = least_peak_order(graph)
        least = min(peak_by_definition(graph, order) for order in all_orders(graph))
        assert found.peak_nbytes == found.bound_nbytes == least, seed
        assert peak_by_definition(graph, found.order) == least
        assert is_possible(graph, found.order)
        better += least < found.given_nbytes
    assert better > 50


@pytest.mark.parametrize("states", [0, 1, 5, 20])
def test_with_little_effort_it_is_possible_and_no_worse_and_bounds_are_true(states: int) -> None:
    unproven = 0
    for seed in range(100):
        graph = random_graph(seed)
        found = least_peak_order(graph, most_states=states)
        least = least_peak_order(graph).peak_nbytes
        assert is_possible(graph, found.order)
        assert found.bound_nbytes <= least <= found.peak_nbytes <= found.given_nbytes
        assert peak_by_definition(graph, found.order) == found.peak_nbytes
        assert found.states <= states
        unproven += not found.is_optimal
    assert unproven or states > 1


def test_branches_run_one_after_the_other() -> None:
    """Both first operations at once leave 18,900 bytes; the wider branch alone takes 10,100."""
    found = least_peak_order(branches(8_900, 10_000))
    assert (found.given_nbytes, found.peak_nbytes, found.bound_nbytes) == (19_000, 10_100, 10_100)
    assert found.order == (1, 3, 0, 2, 4)


def test_a_given_order_that_is_best_stays() -> None:
    graph = branches(500)
    assert least_peak_order(graph).order == (0, 1, 2)
    lone = OpGraph(waits_for=(), buffers=())
    assert least_peak_order(lone) == PeakOrder(
        order=(), peak_nbytes=0, bound_nbytes=0, given_nbytes=0, states=0
    )


@pytest.mark.parametrize("kind", list(CELL_KINDS))
@pytest.mark.parametrize("seed", range(2))
def test_wired_networks_need_less_and_alike_every_time(kind: str, seed: int) -> None:
    cell = CELL_KINDS[kind](seed)
    graph = cell.graph(cell.breadth_first())
    found = least_peak_order(graph, most_states=6_000)
    assert is_possible(graph, found.order)
    assert found.bound_nbytes <= found.peak_nbytes < 0.9 * found.given_nbytes
    assert found == least_peak_order(graph, most_states=6_000)
    assert found.peak_nbytes == graph.peak_nbytes(found.order)
    deep = cell.graph(cell.depth_first())
    assert found.peak_nbytes <= deep.peak_nbytes(range(len(found.order)))


def test_a_long_network_of_small_cells_takes_few_states() -> None:
    """Cells are searched apart, and only as far as the highest of them needs."""
    graph = chain_of_cells(300)
    found = least_peak_order(graph)
    assert found.is_optimal
    assert len(graph.waits_for) > 2_000
    assert found.states < 200


def test_when_time_is_over_there_is_the_best_so_far() -> None:
    cell = random_wires(1)
    graph = cell.graph(cell.breadth_first())
    looks = iter([False, False, True])
    found = least_peak_order(graph, is_over=lambda: next(looks))
    assert 0 < found.states < least_peak_order(graph, most_states=5_000).states
    assert is_possible(graph, found.order)
    assert found.bound_nbytes <= found.peak_nbytes <= found.given_nbytes


@pytest.mark.parametrize(
    ("waits_for", "users", "why"),
    [
        ((frozenset({0}),), {0}, "operation 0 waits for one that is not given before it"),
        ((frozenset({1}), frozenset()), {0}, "operation 0 waits"),
        ((frozenset(),), set(), "a buffer that no operation uses"),
    ],
)
def test_what_is_no_graph_is_refused(
    waits_for: tuple[frozenset[int], ...], users: set[int], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        OpGraph(waits_for=waits_for, buffers=(LiveBuffer(nbytes=1, users=frozenset(users)),))
