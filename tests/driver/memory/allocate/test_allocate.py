"""The exact allocator: against trying everything, on real tight problems, and what it refuses."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from time import process_time

import pytest
from kit.shared import shared_folder
from tilefarm.errors import UserError

from driver.benchmarks.memory.everyday import everyday_graph
from driver.benchmarks.memory.tight import CAPACITY_NBYTES, SHAPES, cut
from driver.memory.allocate import Allocation, Interval, Unallocated, allocate
from driver.memory.minimalloc_csv import read_minimalloc

NODES = 1_000_000


def interval(
    lower: int, upper: int, nbytes: int, alignment: int = 1, fixed: int | None = None
) -> Interval:
    return Interval(
        lower=lower, upper=upper, nbytes=nbytes, alignment=alignment, fixed_offset=fixed
    )


def flaws(
    intervals: Sequence[Interval],
    offsets: Sequence[int],
    peak_nbytes: int,
    reserved: Sequence[tuple[int, int]] = (),
) -> Iterator[str]:
    """What is wrong with offsets, from the definition."""
    for number, (each, offset) in enumerate(zip(intervals, offsets, strict=True)):
        if offset % each.alignment or offset < 0 or offset + each.nbytes > peak_nbytes:
            yield f"{number} at {offset}"
        if each.fixed_offset not in (None, offset):
            yield f"{number} at {offset} is not where it must be"
        for begin, nbytes in reserved:
            if offset < begin + nbytes and begin < offset + each.nbytes:
                yield f"{number} at {offset} is in reserved bytes"
    for (a, x), (b, y) in combinations(zip(intervals, offsets, strict=True), 2):
        if x < y + b.nbytes and y < x + a.nbytes and meet(a, b):
            yield f"{a} at {x} and {b} at {y}"


def meet(a: Interval, b: Interval) -> bool:
    return any(x < w and z < y for x, y in a.lifetimes for z, w in b.lifetimes)


def smallest_peak(
    intervals: Sequence[Interval],
    reserved: Sequence[tuple[int, int]],
    offsets: tuple[int, ...] = (),
    best: int = 99,
) -> int:
    """By trying everything."""
    at = len(offsets)
    placed = intervals[:at]
    if any(flaws(placed, offsets, best - 1, reserved)):
        return best
    if at == len(intervals):
        return max((o + i.nbytes for o, i in zip(offsets, intervals, strict=True)), default=0)
    fixed = intervals[at].fixed_offset
    for offset in range(0, best, intervals[at].alignment) if fixed is None else (fixed,):
        if offset + intervals[at].nbytes >= best:
            break
        best = smallest_peak(intervals, reserved, (*offsets, offset), best)
    return best


def drawn(seed: int) -> tuple[list[Interval], list[tuple[int, int]]]:
    """A few small buffers, of which some live twice, are aligned, or lie where they must."""
    rng = random.Random(seed)
    alignments = rng.choice(((1,), (4,), (1, 2, 4)))
    intervals = []
    for _ in range(rng.randint(1, 5)):
        lower = rng.randint(0, 5)
        upper = lower + rng.randint(1, 3)
        again = upper + rng.randint(1, 2)
        later = ((again, again + rng.randint(1, 2)),) if rng.random() < 0.2 else ()
        intervals.append(
            Interval(
                lower=lower,
                upper=upper,
                nbytes=rng.randint(1, 5),
                alignment=rng.choice(alignments),
                later=later,
            )
        )
    reserved = [(rng.randint(0, 5), rng.randint(1, 3))] if rng.random() < 0.3 else []
    return intervals, reserved


@pytest.mark.parametrize("block", range(10))
def test_the_smallest_peak_is_that_of_trying_everything(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        intervals, reserved = drawn(seed)
        least = smallest_peak(intervals, reserved)
        found = allocate(intervals, reserved=reserved, nodes=NODES, seed=seed)
        assert isinstance(found, Allocation)
        assert (found.peak_nbytes, found.bound_nbytes, found.is_optimal) == (least, least, True)
        assert not [*flaws(intervals, found.offsets, least, reserved)]
        within = allocate(intervals, reserved=reserved, capacity_nbytes=least, nodes=NODES)
        assert isinstance(within, Allocation)
        below = allocate(intervals, reserved=reserved, capacity_nbytes=least - 1, nodes=NODES)
        assert below == Unallocated(is_proved=True, bound_nbytes=least, nodes=below.nodes)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_memory_that_is_cut_into_buffers_is_put_together_again(shape: str) -> None:
    for seed in range(3):
        intervals = cut(100, SHAPES[shape], seed)
        found = allocate(intervals, capacity_nbytes=CAPACITY_NBYTES, nodes=NODES, seconds=60.0)
        assert isinstance(found, Allocation)
        assert found.is_optimal
        assert not [*flaws(intervals, found.offsets, CAPACITY_NBYTES)]
        shuffled = intervals[::-1]
        short = allocate(shuffled, capacity_nbytes=CAPACITY_NBYTES - 1)
        assert short == Unallocated(is_proved=True, bound_nbytes=CAPACITY_NBYTES, nodes=0)


@pytest.mark.parametrize("seed", range(20))
def test_everyday_graphs_lie_as_low_as_can_be(seed: int) -> None:
    graph = everyday_graph(seed)
    found = allocate(graph, nodes=NODES, seconds=60.0)
    assert isinstance(found, Allocation)
    assert found.is_optimal
    assert not [*flaws(graph, found.offsets, found.peak_nbytes)]


def minimalloc_files() -> list[Path]:
    shared = shared_folder()
    return sorted((shared / "minimalloc").glob("?.1048576.csv")) if shared else []


def test_the_challenging_suite_of_minimalloc_fits() -> None:
    files = minimalloc_files()
    if not files:
        pytest.skip("no ../shared/minimalloc")
    nodes = 0
    for path in files:
        intervals = [row.interval for row in read_minimalloc(path)]
        found = allocate(intervals, capacity_nbytes=1_048_576, seconds=120.0)
        assert isinstance(found, Allocation), path
        assert not [*flaws(intervals, found.offsets, 1_048_576)], path
        nodes += found.nodes
    assert len(files) == 11
    assert nodes < 3_000_000


def test_the_example_of_minimalloc() -> None:
    rows = ((0, 3, 4), (3, 9, 4), (0, 9, 4), (9, 21, 4), (0, 21, 4))
    found = allocate([interval(*row) for row in rows], capacity_nbytes=12)
    assert isinstance(found, Allocation)
    assert (found.peak_nbytes, found.nodes) == (12, 0)


def test_same_seed_same_offsets() -> None:
    intervals = cut(200, SHAPES["windmills"], 0)
    once, again = (allocate(intervals, nodes=NODES, seconds=60.0, seed=3) for _ in range(2))
    assert once == again


def test_a_search_that_may_not_go_on_says_what_it_has() -> None:
    intervals = cut(300, SHAPES["40 sections"], 0)
    missed = allocate(intervals, capacity_nbytes=CAPACITY_NBYTES, nodes=5000)
    assert missed == Unallocated(is_proved=False, bound_nbytes=CAPACITY_NBYTES, nodes=5000)
    best = allocate(intervals, nodes=5000)
    assert isinstance(best, Allocation)
    assert not best.is_optimal
    assert best.bound_nbytes == CAPACITY_NBYTES < best.peak_nbytes
    assert not [*flaws(intervals, best.offsets, best.peak_nbytes)]
    began = process_time()
    assert isinstance(allocate(intervals, seconds=0.0), Allocation)
    assert process_time() - began < 5


def test_ctrl_c_ends_a_long_search(monkeypatch: pytest.MonkeyPatch) -> None:
    intervals = cut(300, SHAPES["40 sections"], 0)
    began = process_time()
    before = signal.signal(signal.SIGVTALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            allocate(intervals, capacity_nbytes=CAPACITY_NBYTES, seconds=60.0)
        assert process_time() - began < 20
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def test_fixed_buffers_and_reserved_bytes_stay() -> None:
    intervals = [interval(0, 4, 10, fixed=20), interval(0, 9, 8), interval(2, 6, 16, 16)]
    found = allocate(intervals, reserved=[(0, 4), (2, 6)])
    assert isinstance(found, Allocation)
    assert (found.offsets, found.peak_nbytes) == ((20, 8, 32), 48)
    against = [interval(0, 4, 10, fixed=20), interval(3, 5, 1, fixed=29)]
    refused = allocate(against)
    assert isinstance(refused, Unallocated)
    assert refused.is_proved


def test_nothing_and_buffers_without_bytes() -> None:
    assert allocate([]) == Allocation(
        offsets=(), peak_nbytes=0, bound_nbytes=0, is_optimal=True, nodes=0
    )
    found = allocate([interval(0, 1, 0, 64), interval(0, 1, 5)], capacity_nbytes=5)
    assert isinstance(found, Allocation)
    assert found.offsets == (0, 0)


def test_the_topmost_buffer_needs_no_padding() -> None:
    found = allocate([interval(0, 2, 65, 64), interval(0, 2, 64, 64)], capacity_nbytes=129)
    assert isinstance(found, Allocation)
    assert (found.peak_nbytes, found.offsets) == (129, (64, 0))


def test_large_addresses_do_not_wrap_around() -> None:
    huge = 2**60
    found = allocate([interval(0, 2, huge), interval(1, 3, huge), interval(0, 3, huge)])
    assert isinstance(found, Allocation)
    assert found.peak_nbytes == 3 * huge
    with pytest.raises(UserError, match="add up to"):
        allocate([interval(0, 2, huge), interval(0, 2, 2**62 - 2)])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (interval(3, 3, 1), "buffer 1 of 2: it lives from 3 to 3"),
        (interval(0, 1, -1), "buffer 1 of 2: -1 bytes"),
        (interval(0, 1, 1, 0), "buffer 1 of 2: an alignment of 0"),
        (interval(0, 1, 1, 4, 2), "buffer 1 of 2: it cannot lie at 2 with an alignment of 4"),
        (
            Interval(lower=0, upper=4, nbytes=1, later=((3, 5),)),
            "buffer 1 of 2: its lifetimes overlap at 3",
        ),
        (interval(0, 2**62, 1), "buffer 1 of 2: it lives from 0 to"),
    ],
)
def test_what_cannot_be_is_named(wrong: Interval, why: str) -> None:
    with pytest.raises(UserError, match=why):
        allocate([interval(0, 1, 1), wrong])


def test_arguments_that_cannot_be_are_named() -> None:
    with pytest.raises(UserError, match="a capacity of -1"):
        allocate([], capacity_nbytes=-1)
    with pytest.raises(UserError, match="-4 bytes at 0 are reserved"):
        allocate([], reserved=[(0, -4)])
    with pytest.raises(UserError, match="20001 buffers"):
        allocate([interval(0, 1, 1)] * 20_001)
