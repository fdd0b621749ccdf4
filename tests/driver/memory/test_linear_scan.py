"""The allocator's rules, on memories of a few bytes that one can draw."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples

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


def test_l3_two_that_do_not_fit_together_are_refused_as_a_whole() -> None:
    scan = LinearScan(1)
    assert scan.allocate_all([BufferRequest("r1", 1), BufferRequest("r2", 1)]) is None
    assert scan.ranges == ()


def test_l5_downward_the_high_end_is_taken() -> None:
    scan = LinearScan(128, fixed=[(0, 64)])
    placed = scan.allocate(BufferRequest("r1", 40), downward=True)
    assert placed is not None
    assert placed.offset == 88
    assert scan.allocate(BufferRequest("r2", 80), downward=True) is None


def test_m6_a_bin_is_cut_into_what_is_asked_for_or_not_at_all() -> None:
    scan = LinearScan(10)
    sizes = (7, 1, 3)
    assert not scan.fits([BufferRequest(f"r{k}", n) for k, n in enumerate(sizes)])
    placed = scan.allocate_all([BufferRequest(f"r{k}", n) for k, n in enumerate((7, 1, 1))])
    assert placed is not None
    assert [(r.offset + 1, r.end) for r in placed] == [(1, 7), (8, 8), (9, 9)]


def test_m6_gaps_of_one_and_seven_do_not_hold_six_and_two() -> None:
    scan = filled(10, *(BufferRequest(n, k) for n, k in (("a", 1), ("b", 2))))
    scan.free("a")
    assert not scan.fits([BufferRequest("x", 6), BufferRequest("y", 2)])


def test_a_pin_is_for_those_that_are_pinned_there() -> None:
    scan = LinearScan(16, pinned=[(4, 4)])
    assert offsets(scan) == {}
    assert scan.allocate_all([BufferRequest("a", 4), BufferRequest("b", 4)])
    assert offsets(scan) == {"a": 0, "b": 8}
    assert scan.allocate(BufferRequest("p", 4, pinned_at=4))
    assert scan.allocate(BufferRequest("q", 2, pinned_at=6)) is None


requests = st.tuples(st.integers(1, 40), st.sampled_from([1, 2, 8]))


@settings(max_examples=examples(60), deadline=None)
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
