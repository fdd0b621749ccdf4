"""Bisection: exact times take a logarithm of steps, noisy ones more; skipped ones leave a range."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.jobs.nightly.bisect.commit_search import CommitSearch


def run(count: int, spread: float, cost: Callable[[int], float | None]) -> tuple[CommitSearch, int]:
    """The search at its end, and how many measurements it took."""
    search, taken = CommitSearch(count=count, spread=spread), 0
    while (at := search.next()) is not None:
        taken += 1
        assert taken < 2000
        found = cost(at)
        search = search.without(at) if found is None else search.measured(at, found)
    return search, taken


@given(count=st.integers(2, 300), data=st.data())
def test_exact_times_are_bisected(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, count - 1))
    change = data.draw(st.sampled_from([-0.5, -0.001, 0.001, 0.5]))
    search, taken = run(count, 0.0, lambda at: 1e6 * (1 + change * (at >= first)))
    assert search.found() == (first,)
    assert taken <= 2 + math.ceil(math.log2(max(2, count - 1)))


@given(count=st.integers(3, 60), data=st.data())
def test_commits_that_cannot_be_measured_leave_a_range_that_holds_the_one(
    count: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(1, count - 1))
    broken = data.draw(st.sets(st.integers(1, count - 2)))
    search, _ = run(count, 0.0, lambda at: None if at in broken else 1.0 + (at >= first))
    found = search.found()
    assert first in found
    assert all(each in broken or each - 1 in broken for each in found) or found == (first,)
    assert found == tuple(range(found[0], found[-1] + 1))
    assert set(range(found[0], found[-1])) <= broken


def test_a_change_in_two_steps_is_blamed_on_the_one_past_the_middle() -> None:
    search, _ = run(20, 0.0, lambda at: 100.0 + 10 * (at >= 5) + 90 * (at >= 12))
    assert search.found() == (12,)


@pytest.mark.parametrize("cost", [1.0, 7.5])
def test_no_change_is_said(cost: float) -> None:
    search, taken = run(50, 0.0, lambda _: cost)
    assert not search.has_change
    assert search.found() == ()
    assert taken == 2


def test_an_end_that_cannot_be_measured_ends_the_search() -> None:
    search, taken = run(9, 0.0, lambda at: None if at == 0 else 1.0)
    assert (search.found(), taken) == ((), 1)


@pytest.mark.parametrize(("change", "spread"), [(0.03, 0.01), (0.03, 0.005), (-0.1, 0.03)])
def test_noisy_times_find_it_in_nearly_all_searches(change: float, spread: float) -> None:
    right = taken_in_all = 0
    for seed in range(60):
        chance = random.Random(seed)
        first = chance.randrange(1, 64)

        def cost(at: int, first: int = first, chance: random.Random = chance) -> float:
            disturbed = 1.2 if chance.random() < 0.02 else 1.0
            return disturbed * chance.gauss(1.0, spread) * (1 + change * (at >= first))

        search, taken = run(64, spread, cost)
        right += search.found() == (first,)
        taken_in_all += taken
    assert right >= 54
    assert taken_in_all < 60 * 40


def _noise(chance: random.Random, _: int) -> float:
    return chance.gauss(1.0, 0.01)


def test_noise_alone_is_no_change() -> None:
    wrong = 0
    for seed in range(60):
        chance = random.Random(seed)
        search, _ = run(32, 0.01, partial(_noise, chance))
        wrong += search.has_change
    assert wrong <= 3
