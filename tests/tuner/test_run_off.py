"""Finalists, and who of them is best."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.search.toy_spaces import timed, trial_of
from tilefarm.measurement import Status, Trial

from tuner.run_off import RunOff, finalists, is_decided, winner


def trials(*seconds: float, noise: float = 0.001) -> list[Trial]:
    return [trial_of({"x": x}, wall_time=timed(s, noise)) for x, s in enumerate(seconds)]


def run_off(*rounds: list[float], of: list[Trial]) -> RunOff:
    """`rounds` are the times of these trials, round by round."""
    times = {t.trace: tuple(map(timed, s)) for t, *s in zip(of, *rounds, strict=True)}
    return RunOff(workload=of[0].workload, device="board", times=times)


def test_finalists_are_those_near_the_best_and_few() -> None:
    some = trials(1.30, 1.02, 1.00, 1.05, 1.02)
    assert finalists(some) == [some[2], some[1], some[4]]
    assert len(finalists(trials(*[1.0] * 9))) == 5


def test_a_time_that_is_spread_widely_is_in_doubt() -> None:
    some = trials(1.00, 1.05)
    assert len(finalists(some)) == 1
    assert len(finalists([some[0], *trials(1.05, noise=0.1)])) == 2


def test_counters_leave_no_doubt() -> None:
    counted = [trial_of({"x": x}, cycles=100) for x in range(3)]
    assert finalists(counted) == []
    assert is_decided(counted, None)
    assert winner(counted, None) == counted[0]


def test_nothing_is_timed_again_where_nothing_is_in_doubt() -> None:
    assert is_decided([], None)
    assert is_decided(trials(1.0, 2.0), None)
    some = trials(1.0, 1.01)
    assert not is_decided(some, None)
    assert is_decided(some, run_off([1.0, 1.0], of=some))
    assert not is_decided([*some, *trials(2, 2, 1.005)], run_off([1.0, 1.0], of=some))


def test_without_a_run_off_the_least_is_the_best() -> None:
    some = trials(1.01, 1.0, 1.2)
    assert winner(some, None) == some[1]
    assert winner([], None) is None
    assert (
        winner([trial_of({"x": 1}, Status.RUN_CRASH), trial_of({"x": 2}, cycles=0)], None) is None
    )


def test_the_run_off_decides_and_its_time_counts() -> None:
    some = trials(1.00, 1.01, 1.02)
    best = winner(some, run_off([1.10, 1.05, 1.07], [1.11, 1.06, 1.08], of=some))
    assert best is not None
    assert best.trace == some[1].trace
    assert best.cost == pytest.approx(1.055)


def test_a_host_that_gets_slower_changes_nothing() -> None:
    """Each round is compared in itself: what the third round took says nothing about the first."""
    some = trials(1.00, 1.01)
    best = winner(some, run_off([1.02, 1.00], [1.32, 1.30], [1.62, 1.60], of=some))
    assert best is not None
    assert best.trace == some[1].trace


def test_of_those_that_cannot_be_told_apart_the_first_that_was_asked_for_is_best() -> None:
    some = trials(1.00, 1.00, 1.00)
    rounds = [[1.00, 1.01, 1.05], [1.01, 1.00, 1.05], [1.02, 1.00, 1.05], [1.00, 1.01, 1.05]]
    best = winner(some, run_off(*rounds, of=some))
    assert best is not None
    assert best.trace == some[0].trace


def test_much_noise_makes_no_tie_of_what_is_likely_to_be_slower() -> None:
    some = trials(1.00, 1.00)
    rounds = [[1.05, 1.00], [1.50, 1.00], [0.90, 1.00], [1.30, 1.00], [0.95, 1.00]]
    best = winner(some, run_off(*rounds, of=some))
    assert best is not None
    assert best.trace == some[1].trace


def test_a_run_off_that_knows_not_all_finalists_decides_nothing() -> None:
    some = trials(1.00, 1.01)
    old = run_off([1.02, 1.00], of=some)
    faster = trials(9, 9, 0.5)[2]
    assert winner([*some, faster], old) == faster
    assert is_decided([*some, faster], old), "there is one finalist, and it is new"
    level = trials(9, 9, 1.005)[2]
    assert winner([*some, level], old) == some[0]


@given(st.lists(st.lists(st.floats(0.5, 2.0), min_size=3, max_size=3), min_size=1, max_size=6))
def test_the_winner_follows_from_the_records(rounds: list[list[float]]) -> None:
    some = trials(1.0, 1.0, 1.0)
    one = winner(some, run_off(*rounds, of=some))
    for order in permutations(range(3)):
        turned = [[each[at] for at in order] for each in rounds]
        other = winner(some, run_off(*turned, of=[some[at] for at in order]))
        assert one is not None
        assert other is not None
        assert other.trace == one.trace
