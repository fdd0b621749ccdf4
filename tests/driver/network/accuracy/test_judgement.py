"""Promises: what may be lost, on which samples, and when samples say nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tilefarm.errors import SettingsError

from driver.network import Dataset
from driver.network.accuracy.choosing import chance_accuracy
from driver.network.accuracy.judgement import Judgement, is_chance, judgement, points_text
from driver.network.accuracy.judging import Compared
from driver.network.accuracy.kinds import AnswerKind
from driver.network.accuracy.promise import Promise
from driver.network.frontend.held_out import held_out

LABELS = Compared(name="top-1", against="labels", unit="%", floats=90.0, reference=88.0)
FLOAT = Compared(name="top-1", against="float", unit="%", floats=None, reference=97.5)
RATIO = Compared(name="SNR", against="float", unit="dB", floats=None, reference=30.0)


def judged(*rows: Compared, points: float = 1.0, chance: float | None = None) -> Judgement | None:
    return judgement(Promise(points=points), rows, samples=100, is_held_out=True, chance=chance)


@pytest.mark.parametrize("points", [-1, 101, math.nan, math.inf])
def test_losses_that_there_are_not(points: float) -> None:
    with pytest.raises(SettingsError, match="not a number of points from 0 to 100"):
        Promise(points=points)


def test_labels_say_more_than_float() -> None:
    found = judged(LABELS, FLOAT, RATIO)
    assert found is not None
    assert (found.title, found.points, found.is_kept) == ("top-1 of labels", 2.0, False)
    assert found.words() == "2 points of top-1 of labels lost (90.0 % to 88.0 %, 100 samples)"
    assert found.verdict().startswith("promise of 1 point broken: 2 points")


def test_without_labels_float_is_all_right() -> None:
    found = judged(RATIO, FLOAT, points=2.5)
    assert found is not None
    assert (found.floats, found.points, found.is_kept) == (100.0, 2.5, True)


def test_a_gain_is_no_loss() -> None:
    found = judged(Compared(name="R2", against="labels", unit="%", floats=80.0, reference=81.0))
    assert found is not None
    assert found.is_kept
    assert "0 points of R2 of labels lost" in found.words()


def test_a_float_network_that_guesses_is_judged_by_itself() -> None:
    guesses = Compared(name="top-1", against="labels", unit="%", floats=14.0, reference=10.0)
    found = judged(guesses, FLOAT, chance=10.0)
    assert found is not None
    assert found.title == "top-1 of float"
    assert is_chance(14.0, 10.0, 100)
    assert not is_chance(14.0, 10.0, 10_000)
    assert is_chance(100.0, 100.0, 9)
    assert not is_chance(14.0, None, 100)


def test_nothing_is_said_where_nothing_is_known() -> None:
    unknown = Compared(name="boxes F1", against="float", unit="%", floats=None, reference=None)
    assert judged(unknown, RATIO) is None


def test_samples_that_calibrated_are_told() -> None:
    found = judgement(Promise(), [FLOAT], samples=1, is_held_out=False)
    assert found is not None
    assert found.words().endswith("1 sample, which calibrated it)")


def test_points_in_words() -> None:
    assert [points_text(p) for p in (0, 1, 0.5, 2.346)] == [
        "0 points", "1 point", "0.5 points", "2.35 points",
    ]  # fmt: skip


def test_the_commonest_class_is_chance() -> None:
    assert chance_accuracy(np.array([1, 1, 1, 0]), "classes") == 75.0
    assert chance_accuracy(None, "classes") is None


def test_what_guesses_reach_by_other_measures() -> None:
    kind: AnswerKind
    for kind in ("boxes", "images", "values"):
        assert chance_accuracy(np.array([1, 1]), kind) == 0.0
    for kind in ("embeddings", "pixels"):
        assert chance_accuracy(np.array([1, 1]), kind) is None
    assert is_chance(-3.0, 0.0, 50)
    assert not is_chance(0.5, 0.0, 50)


def test_samples_that_did_not_calibrate() -> None:
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    evaluation = Dataset({"x": x}, None)
    assert held_out(evaluation, None).all()
    assert held_out(evaluation, Dataset({"x": x[[4, 1]]}, None)).tolist() == [
        True, False, True, True, False, True,
    ]  # fmt: skip
    assert not held_out(evaluation, evaluation).any()
