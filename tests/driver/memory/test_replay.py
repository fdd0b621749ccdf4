"""Who waits for whom because of bytes, and what a plan is worth when durations vary."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driver.memory import Buffer, Op, Plan, Problem, plan, replay, sampled_ticks
from driver.memory.reuse_edges import Access, Occupant, conflicts, needed


def accesses(*rows: str) -> tuple[Access, ...]:
    """`P 0 100`: a writer, `C 0 100`: a reader, of a range with both ends, as they are numbered."""
    found = []
    for user, row in enumerate(rows):
        kind, begin, end = row.split()
        found.append(Access(user=user, begin=int(begin), end=int(end) + 1, writes=kind == "P"))
    return tuple(found)


def edges(*rows: str, parallel: frozenset[int] = frozenset()) -> list[tuple[int, int]]:
    """Of one buffer's users; those that are parallel run at once."""
    one = Occupant(begin=0, end=1000, accesses=accesses(*rows))
    found = conflicts([one], lambda early, late: {early, late} <= parallel)
    return list(needed(found, [()] * len(rows)))


def test_writers_wait_for_readers_and_readers_for_writers() -> None:
    """The case of npu_compiler's unit test of its edge generator."""
    rows = ("P 0 100", "C 0 100", "C 0 100", "P 0 50", "P 51 100", "C 0 50", "C 51 100")
    found = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 5), (4, 6)]
    assert edges(*rows) == found


def test_two_writers_of_parts_wait_for_neither_and_a_third_for_the_readers_of_its_bytes() -> None:
    """As published for views; those are strided there, and so of one range."""
    rows = ("P 0 75", "P 76 100", "C 0 75", "C 76 100", "P 50 150")
    assert edges(*rows) == [(0, 2), (1, 3), (2, 4), (3, 4)]


def test_who_runs_beside_a_writer_waits_for_those_before_both() -> None:
    rows = ("P 0 9", "C 0 9", "P 0 9", "P 0 9", "C 0 9", "P 0 9")
    found = edges(*rows, parallel=frozenset({2, 3}))
    assert found == [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5)]


def test_bytes_that_are_only_read_are_waited_for() -> None:
    assert edges("C 10 20", "P 0 15", "P 16 30") == [(0, 1), (0, 2)]


def test_all_users_of_bytes_are_waited_for_by_those_of_the_next_buffer_there() -> None:
    """0, 1 in [0, 10), 2 in [10, 20), 3 in [5, 15), 4 in [0, 20): 2 and 3 lie over parts of it."""
    users = [(0, 10, (0, 1)), (10, 20, (2,)), (5, 15, (3,)), (0, 20, (4,))]
    occupants = [
        Occupant(
            begin=begin,
            end=end,
            accesses=tuple(Access(user=each, begin=begin, end=end) for each in mine),
        )
        for begin, end, mine in users
    ]
    found = conflicts(occupants, lambda early, late: False)
    assert needed(found, [()] * 5) == ((0, 3), (1, 3), (2, 3), (3, 4))
    assert needed(found, [(), (), (1,), (2,), ()]) == ((0, 3), (3, 4))


def diamond(samples: tuple[int, ...]) -> tuple[Problem, Plan]:
    """a -> b, c -> d on four engines; b takes 10 ticks, c what is sampled."""
    names = "abcd"
    problem = Problem(
        buffers=tuple(Buffer(name=name, nbytes=8) for name in names),
        ops=(
            Op(name="a", writes=("a",)),
            Op(name="b", engine="second", duration_ticks=10, reads=("a",), writes=("b",)),
            Op(
                name="c",
                engine="third",
                duration_ticks=None,
                samples=samples,
                reads=("a",),
                writes=("c",),
            ),
            Op(name="d", reads=("b", "c"), writes=("d",)),
        ),
        engines=tuple(
            replace(Problem(buffers=(), ops=()).engines[0], name=name)
            for name in ("first", "second", "third")
        ),
    )
    found = plan(problem)
    assert isinstance(found, Plan)
    return problem, found


def test_the_slower_of_two_branches_is_critical_as_often_as_it_is_slower() -> None:
    problem, found = diamond((5, 5, 5, 30))
    said = replay(problem, found, list(sampled_ticks(problem, 1000, seed=3)))
    assert (said.runs, said.p10_ticks, said.median_ticks, said.p90_ticks) == (1000, 12, 12, 32)
    shares = dict(said.criticality)
    assert shares["a"] == shares["d"] == 1
    assert shares["c"] == pytest.approx(0.25, abs=0.05)
    assert shares["b"] == pytest.approx(1 - shares["c"])
    assert replay(problem, found, list(sampled_ticks(problem, 1000, seed=3))) == said


def test_without_samples_every_run_is_the_plan() -> None:
    problem, found = diamond((10,))
    said = replay(problem, found, list(sampled_ticks(problem, 3, seed=1)))
    assert said.p10_ticks == said.p90_ticks == found.makespan_ticks == 12
