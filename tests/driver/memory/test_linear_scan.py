"""The allocator's rules, on memories of a few bytes that one can draw."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.memory.linear_scan import BufferRequest, Direction, LinearScan


def offsets(scan: LinearScan) -> dict[str, int]:
    return {r.request.name: r.offset for r in scan.ranges}


def filled(capacity: int, *requests: BufferRequest) -> LinearScan:
    scan = LinearScan(capacity)
    assert scan.allocate(requests) is not None
    return scan


def test_a_full_memory_refuses_and_stays_as_it_is() -> None:
    scan = filled(4, BufferRequest("r1", 2), BufferRequest("r2", 2))
    before = scan.ranges
    assert scan.allocate([BufferRequest("r3", 2)]) is None
    assert scan.ranges == before


def test_the_lightest_is_spilled() -> None:
    scan = filled(
        4, BufferRequest("r1", 2, spill_weight=0), BufferRequest("r2", 2, spill_weight=-1)
    )
    found = scan.allocate_spilling(BufferRequest("r3", 2))
    assert found is not None
    placed, spilled = found
    assert placed.offset == 2
    assert [r.request.name for r in spilled] == ["r2"]


def test_what_was_removed_in_vain_is_restored() -> None:
    weights = {"r1": 1, "r2": 3, "r3": 4, "r4": 2}
    scan = filled(4, *(BufferRequest(n, 1, spill_weight=w) for n, w in weights.items()))
    found = scan.allocate_spilling(BufferRequest("new", 2))
    assert found is not None
    placed, spilled = found
    assert placed.offset == 0
    assert sorted(r.request.name for r in spilled) == ["r1", "r2"]
    assert offsets(scan) == {"new": 0, "r3": 2, "r4": 3}


def test_spilling_cannot_make_a_memory_larger() -> None:
    scan = filled(4, BufferRequest("r1", 3))
    before = scan.ranges
    assert scan.allocate_spilling(BufferRequest("new", 5)) is None
    assert scan.ranges == before


def test_a_list_is_placed_as_a_whole_or_not_at_all() -> None:
    scan = LinearScan(1)
    assert scan.allocate([BufferRequest("r1", 1), BufferRequest("r2", 1)]) is None
    assert scan.ranges == ()


def test_downward_in_what_a_fixed_range_leaves() -> None:
    scan = LinearScan(128, fixed=[(0, 64)])
    placed = scan.allocate([BufferRequest("r1", 40)], Direction.DOWN)
    assert placed is not None
    assert placed[0].offset == 88
    assert scan.allocate([BufferRequest("r2", 80)], Direction.DOWN) is None


def test_the_smallest_gap_that_fits_wins_over_the_open_end() -> None:
    scan = filled(100, *(BufferRequest(n, k) for n, k in (("a", 8), ("b", 1), ("c", 4), ("d", 1))))
    scan.free("a")
    scan.free("c")
    assert scan.allocate([BufferRequest("x", 3)])
    assert scan.allocate([BufferRequest("y", 6)])
    assert scan.allocate([BufferRequest("z", 6)])
    assert offsets(scan) == {"x": 9, "y": 0, "b": 8, "d": 13, "z": 14}


def test_alignment_counts_from_the_memory_begin() -> None:
    scan = filled(64, BufferRequest("a", 3))
    assert scan.allocate([BufferRequest("b", 8, alignment=16)])
    assert scan.allocate([BufferRequest("c", 8, alignment=16)], Direction.DOWN)
    assert offsets(scan) == {"a": 0, "b": 16, "c": 48}


requests = st.tuples(st.integers(1, 40), st.sampled_from([1, 2, 8]), st.sampled_from(Direction))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(requests, st.integers(0, 30)), max_size=30))
def test_ranges_never_overlap_and_never_leave_the_memory(
    actions: list[tuple[int, int, Direction] | int],
) -> None:
    scan = LinearScan(100, fixed=[(30, 10)])
    for number, action in enumerate(actions):
        if isinstance(action, int):
            taken = scan.ranges
            if taken:
                scan.free(taken[action % len(taken)].request.name)
        else:
            nbytes, alignment, direction = action
            scan.allocate([BufferRequest(f"r{number}", nbytes, alignment)], direction)
        taken = scan.ranges
        bounds = sorted([(30, 40), *((r.offset, r.end) for r in taken)])
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(bounds))
        assert all(r.offset % r.request.alignment == 0 and r.end <= 100 for r in taken)
