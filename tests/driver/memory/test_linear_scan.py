"""The allocator's rules, on memories of a few bytes that one can draw."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.memory.linear_scan import BufferRequest, LinearScan


def offsets(scan: LinearScan) -> dict[str, int]:
    return {r.request.name: r.offset for r in scan.ranges}


def filled(capacity: int, *requests: BufferRequest) -> LinearScan:
    scan = LinearScan(capacity)
    assert all(scan.allocate(request) for request in requests)
    return scan


def test_a_full_memory_refuses_and_stays_as_it_is() -> None:
    scan = filled(4, BufferRequest("r1", 2), BufferRequest("r2", 2))
    before = scan.ranges
    assert scan.allocate(BufferRequest("r3", 2)) is None
    assert scan.ranges == before


def test_what_is_fixed_is_left_out() -> None:
    scan = LinearScan(128, fixed=[(0, 64)])
    placed = scan.allocate(BufferRequest("r1", 40))
    assert placed is not None
    assert placed.offset == 64
    assert scan.allocate(BufferRequest("r2", 80)) is None


def test_the_smallest_gap_that_fits_wins_over_the_open_end() -> None:
    scan = filled(100, *(BufferRequest(n, k) for n, k in (("a", 8), ("b", 1), ("c", 4), ("d", 1))))
    scan.free("a")
    scan.free("c")
    assert scan.allocate(BufferRequest("x", 3))
    assert scan.allocate(BufferRequest("y", 6))
    assert scan.allocate(BufferRequest("z", 6))
    assert offsets(scan) == {"x": 9, "y": 0, "b": 8, "d": 13, "z": 14}


def test_alignment_counts_from_the_memory_begin() -> None:
    scan = filled(64, BufferRequest("a", 3))
    assert scan.allocate(BufferRequest("b", 8, alignment=16))
    assert offsets(scan) == {"a": 0, "b": 16}


requests = st.tuples(st.integers(1, 40), st.sampled_from([1, 2, 8]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(requests, st.integers(0, 30)), max_size=30))
def test_ranges_never_overlap_and_never_leave_the_memory(
    actions: list[tuple[int, int] | int],
) -> None:
    scan = LinearScan(100, fixed=[(30, 10)])
    for number, action in enumerate(actions):
        if isinstance(action, int):
            taken = scan.ranges
            if taken:
                scan.free(taken[action % len(taken)].request.name)
        else:
            nbytes, alignment = action
            scan.allocate(BufferRequest(f"r{number}", nbytes, alignment))
        taken = scan.ranges
        bounds = sorted([(30, 40), *((r.offset, r.end) for r in taken)])
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(bounds))
        assert all(r.offset % r.request.alignment == 0 and r.end <= 100 for r in taken)
