"""The exact count against brute force and full enumeration; draws are uniform, or by weight."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.search.random_spaces import brute_force, layered_spaces, spaces
from kit.search.toy_spaces import conv_like_space, empty_space, pair_space
from numpy.typing import NDArray
from tilefarm.space import Constraint, Largest, Prod, SearchSpace, Select, Sum, Table, Variable

from tuner.counted_points import CountedPoints, Weights
from tuner.sampler import Sampler

SMALL = conv_like_space(h=8, w=8, co=2, ci=2)

_FAR_OUT = 6.0
"""Standard deviations of a chi-square that no fixed seed of these tests comes near."""


@settings(max_examples=examples(150), deadline=None)
@given(spaces())
def test_the_count_is_that_of_brute_force(space: SearchSpace) -> None:
    counted = CountedPoints.of(space)
    assert counted is None or counted.count == len(brute_force(space))


@settings(max_examples=examples(150), deadline=None)
@given(layered_spaces())
def test_the_count_is_that_of_all_points_where_much_is_computed(space: SearchSpace) -> None:
    counted, rows = CountedPoints.of(space), Sampler(space).all_rows(100_000)
    assert counted is not None
    assert rows is not None
    assert counted.count == len(rows)


@pytest.mark.parametrize(
    ("constraint", "count"),
    [
        (Prod(name="open", product="v", factors=("a", "b", "c")), 8),
        (Sum(name="open", total="v", terms=((1, "a"), (1, "b"), (1, "c"))), 32),
        (Largest(name="open", value="v", options=("a", "b", "c")), 44),
        (Select(name="open", value="v", choice="a", options=("b", "c", "b", "c")), 32),
        (Select(name="open", value="v", choice="b", options=("a", "c", "c", "a")), 32),
        (Select(name="open", value="v", choice="c", options=("a", "b", "a", "b")), 32),
    ],
)
def test_what_is_known_of_a_constraint_tells_partial_points_apart(
    constraint: Constraint, count: int
) -> None:
    """Of three numbers up to 3, where what is made of them is odd."""
    numbers = [Variable(name=name, domain=(0, 1, 2, 3)) for name in "abc"]
    odd = tuple((value,) for value in range(1, 28, 2))
    space = SearchSpace(
        name="open",
        version=1,
        variables=(*numbers, Variable(name="v", tunable=False)),
        constraints=(constraint, Table(name="odd", variables=("v",), rows=odd)),
        default=(),
    )
    counted = CountedPoints.of(space)
    assert counted is not None
    assert counted.count == count == len(Sampler(space).enumerate(100) or ())


@settings(max_examples=examples(60), deadline=None)
@given(st.one_of(spaces(), layered_spaces()), st.integers(0, 5))
def test_draws_are_valid_points_and_all_come(space: SearchSpace, seed: int) -> None:
    sampler = Sampler(space)
    assume(sampler.counted is not None)
    rows = sampler.all_rows(100_000)
    assert rows is not None
    drawn = sampler.independent_draws(40 * len(rows) + 5, np.random.default_rng(seed))
    assert drawn is not None
    assert len(drawn) == (40 * len(rows) + 5 if len(rows) else 0)
    assert {*map(tuple, drawn.tolist())} == {*map(tuple, rows.tolist())}


@pytest.mark.parametrize("space", [SMALL, pair_space(extent=720, limit=720)])
def test_draws_are_uniform(space: SearchSpace) -> None:
    sampler = Sampler(space)
    assert sampler.counted is not None
    count = sampler.counted.count
    assert _chi_square(sampler, np.full(count, 1 / count), None) < _FAR_OUT


def test_draws_follow_weights() -> None:
    sampler = Sampler(SMALL)
    rows, at = sampler.all_rows(100_000), sampler.names.index("tile_h")
    assert rows is not None
    weight = np.where(rows[:, at] == 2, 5.0, 1.0) * (rows[:, at] != 1)
    weights = {"tile_h": {1: 0.0, 2: 5.0}}
    assert _chi_square(sampler, weight / weight.sum(), weights) < _FAR_OUT


def test_where_all_weigh_nothing_none_is_drawn() -> None:
    nothing = {"tile_h": dict.fromkeys(range(9), 0.0)}
    drawn = Sampler(SMALL).independent_draws(5, np.random.default_rng(0), nothing)
    assert drawn is not None
    assert not len(drawn)


def test_an_empty_space_has_no_points() -> None:
    sampler = Sampler(empty_space())
    assert str(sampler.size()) == "0"
    drawn = sampler.independent_draws(5, np.random.default_rng(0))
    assert drawn is not None
    assert not len(drawn)


def test_a_space_that_takes_too_many_edges_is_not_counted() -> None:
    assert CountedPoints.of(SMALL, most_edges=20) is None
    assert CountedPoints.of(SMALL, most_edges=10_000) is not None


def test_a_size_that_takes_too_much_to_count_is_about_right() -> None:
    sampler = Sampler(conv_like_space())
    exactly, about = sampler.size(), sampler.size(most_edges=20)
    assert str(exactly) == "22 956"
    assert str(about).startswith("about 2.")
    assert not about.is_exact


def _chi_square(
    sampler: Sampler,
    share: NDArray[np.float64],
    weights: Weights | None,
) -> float:
    """By how many of its standard deviations the statistic is above its mean."""
    rows = sampler.all_rows(100_000)
    assert rows is not None
    n = 20 * len(rows)
    drawn = sampler.independent_draws(n, np.random.default_rng(0), weights)
    assert drawn is not None
    seen = Counter(map(tuple, drawn.tolist()))
    counts = np.asarray([seen[tuple(row)] for row in rows.tolist()])
    assert not counts[share == 0].any()
    counts, share = counts[share > 0], share[share > 0]
    freedom = len(share) - 1
    statistic = float(((counts - n * share) ** 2 / (n * share)).sum())
    return float((statistic - freedom) / np.sqrt(2 * freedom))
