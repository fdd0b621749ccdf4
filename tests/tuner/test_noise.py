"""What a noisy clock cannot tell apart counts as one cost."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tuner.noise import told_apart

COSTS = st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=20).map(np.asarray)


def test_each_cost_counts_as_the_lowest_that_it_cannot_be_told_from() -> None:
    costs = np.asarray([1.06, 1.00, 1.05, 1.01, 2.0])
    assert told_apart(costs, 0.02).tolist() == [1.05, 1.0, 1.05, 1.0, 2.0]


@given(COSTS)
def test_exact_costs_stay_as_they_are(costs: np.ndarray) -> None:
    assert told_apart(costs, 0.0).tolist() == costs.tolist()


@given(COSTS, st.floats(1e-6, 2.0))
def test_levels_are_within_the_noise_of_their_costs_and_apart_from_one_another(
    costs: np.ndarray, noise: float
) -> None:
    levels = told_apart(costs, noise)
    assert (levels <= costs).all()
    assert (costs <= levels * (1 + noise)).all()
    distinct = np.unique(levels)
    assert (distinct[1:] > distinct[:-1] * (1 + noise)).all()
    assert set(distinct) <= set(costs)
