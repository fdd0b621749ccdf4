"""How many answers noise is expected to change."""

from __future__ import annotations

import numpy as np
import pytest
from kit.networks.random_networks import Builder, conv, dense, window

from driver.network.accuracy.changes import changed_share, expected_changes
from driver.network.graph.ir import Graph


def scores(samples: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Of ten classes, and the same with noise on them."""
    rng = np.random.default_rng(seed)
    floats = rng.standard_normal((samples, 10)) * 3
    return floats, floats + noise * rng.standard_normal(floats.shape)


def counted(floats: np.ndarray, integers: np.ndarray) -> float:
    return float((floats.argmax(axis=1) != integers.argmax(axis=1)).mean())


@pytest.mark.parametrize("noise", [0.05, 0.2, 0.5])
def test_as_many_are_expected_as_are_counted_of_many_samples(noise: float) -> None:
    floats, integers = scores(20_000, noise)
    # a third class that is near as well is not looked at
    assert expected_changes(floats, integers) == pytest.approx(counted(floats, integers), rel=0.2)


def test_few_samples_say_it_better_than_counting() -> None:
    few = [scores(50, 0.3, seed) for seed in range(40)]
    assert np.std([expected_changes(*each) for each in few]) < np.std(
        [counted(*each) for each in few]
    )


def test_what_equals_changes_nothing_and_what_is_no_number_everything() -> None:
    floats, integers = scores(10, 0.1)
    assert expected_changes(floats, floats) == 0
    assert expected_changes(floats, integers * np.nan) == 1


def test_probabilities_change_as_the_scores_behind_them() -> None:
    floats, integers = scores(2000, 0.2)
    made = [np.exp(each) / np.exp(each).sum(axis=1, keepdims=True) for each in (floats, integers)]
    assert expected_changes(*made) == pytest.approx(expected_changes(floats, integers), rel=0.02)


def classes() -> Graph:
    b = Builder((1, 4))
    return b.graph(b.put(dense(np.random.default_rng(0), 4, 3), "x"))


def features() -> Graph:
    b = Builder((1, 4, 8, 8))
    return b.graph(b.put(conv(np.random.default_rng(0), 4, 5, window()), "x"))


def test_outputs_that_are_no_classes_change_by_the_share_of_noise() -> None:
    values = np.ones((2, 5, 8, 8), np.float32)
    assert changed_share(features(), {"out0": values}, {"out0": values * 1.1}) == pytest.approx(
        0.01, rel=1e-3
    )
    assert changed_share(features(), {"out0": values * 0}, {"out0": values}) == 1
    assert changed_share(features(), {"out0": values * 0}, {"out0": values * 0}) == 0
    assert changed_share(features(), {"out0": values}, {"out0": values * np.nan}) == 1


def test_classes_are_told_by_the_outputs_shape() -> None:
    floats = np.array([[3.0, 0, 0], [0, 3.0, 0]], np.float32)
    other = np.array([[3.0, 1, 0], [0, 3.0, 1]], np.float32)
    found = changed_share(classes(), {"out0": floats}, {"out0": other})
    assert found == expected_changes(floats, other)
    assert 0 < found < 0.01
