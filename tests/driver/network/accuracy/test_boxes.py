"""Boxes: read, suppressed, matched and ranked as detectors' users do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefarm.errors import DataError

from driver.network.accuracy.boxes import BoxFormat
from driver.network.accuracy.choosing import BoxOutputs
from driver.network.accuracy.detections import (
    Detections,
    average_precision,
    detections,
    matched,
    overlaps,
)

TWO = BoxOutputs(boxes="boxes", scores="scores")
ONE = BoxOutputs(boxes="y", scores="y")

HERE, BESIDE, AWAY = [0, 0, 10, 10], [0, 0, 10, 8], [50, 50, 60, 60]


def boxes(*rows: list[int]) -> NDArray[np.float64]:
    return np.array(rows, np.float64).reshape(-1, 4)


def some(places: NDArray[np.float64], classes: list[int], scores: list[float]) -> Detections:
    return Detections(
        boxes=places, scores=np.array(scores, np.float64), classes=np.array(classes, np.int64)
    )


def outputs(places: NDArray[Any], scores: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return {"boxes": np.asarray(places)[None], "scores": np.asarray(scores)[None]}


def test_overlaps_are_shares_of_the_union() -> None:
    table = overlaps(boxes(HERE), boxes(HERE, BESIDE, AWAY, [5, 5, 5, 5]))
    assert table.tolist() == [[1.0, 0.8, 0.0, 0.0]]


def test_of_boxes_that_overlap_the_best_of_each_class_stays() -> None:
    places = boxes(HERE, BESIDE, AWAY)
    found = detections(places, np.array([[0.6, 0.7], [0.9, 0.1], [0.4, 0.8]]), 0.5)
    assert found.scores.tolist() == [0.9, 0.8, 0.7]
    assert found.classes.tolist() == [0, 1, 1]
    assert found.boxes[2].tolist() == HERE


def test_the_best_score_takes_the_nearest_box_of_its_class() -> None:
    truth = some(boxes(HERE, AWAY), [0, 1], [1, 1])
    found = some(boxes(BESIDE, HERE, AWAY), [0, 0, 0], [0.9, 0.8, 0.7])
    assert matched(truth, found, 0.5).tolist() == [0.8, 0.0, 0.0]


def test_average_precision() -> None:
    truth = [some(boxes(HERE, AWAY), [0, 0], [1, 1])]
    right = [some(boxes(HERE, AWAY), [0, 0], [0.9, 0.8])]
    first_wrong = [some(boxes(BESIDE, HERE, AWAY), [0, 0, 0], [0.9, 0.8, 0.7])]
    half = [some(boxes(HERE), [0], [0.9])]
    assert average_precision(truth, right, 0.9) == 1.0
    assert average_precision(truth, half, 0.9) == pytest.approx(51 / 101)
    assert average_precision(truth, first_wrong, 0.9) == pytest.approx(2 / 3)
    assert average_precision(truth, [some(boxes(), [], [])], 0.5) == 0.0
    assert average_precision([some(boxes(), [], [])], right, 0.5) is None


def test_corners_with_a_background() -> None:
    answers = outputs(boxes(HERE, AWAY), np.array([[0.1, 0.9], [0.8, 0.2]]))
    read = BoxFormat.read_from(TWO, answers)
    assert (read.form, read.logits, read.background) == ("corners", False, True)
    (found,) = read.of_answers(answers)
    assert found.boxes.tolist() == [HERE]
    assert found.classes.tolist() == [1]


def test_centers_with_logits() -> None:
    answers = outputs(boxes([30, 30, 10, 20]), np.array([[3.0, -4.0]]))
    read = BoxFormat.read_from(TWO, answers)
    assert (read.form, read.logits, read.background) == ("centers", True, False)
    (found,) = read.of_answers(answers)
    assert found.boxes.tolist() == [[25, 20, 35, 40]]
    assert found.scores[0] == pytest.approx(1 / (1 + np.exp(-3)))


def test_boxes_and_scores_in_one_output() -> None:
    place, scores = [30, 30, 10, 20], [0.9, 0.1]
    nothing = [[70 + n, 70, 2, 2, 0.0, 0.0] for n in range(9)]
    columns = np.array([[*place, *scores], *nothing]).T
    read = BoxFormat.read_from(ONE, {"y": columns[None]})
    assert [len(d) for d in read.of_answers({"y": columns[None]})] == [1]
    rows = np.array([[*place, 0.8, *scores], *([*n[:4], 0.0, 1.0, 0.0] for n in nothing)])
    read = BoxFormat.read_from(ONE, {"y": rows[None]})
    (found,) = read.of_answers({"y": rows[None]})
    assert found.scores.tolist() == [pytest.approx(0.72)]


def test_offsets_are_compared_anchor_by_anchor() -> None:
    places = np.random.default_rng(0).normal(size=(50, 4))
    scores = np.zeros((50, 1))
    scores[:2] = 0.9
    floats = outputs(places, scores)
    read = BoxFormat.read_from(TWO, floats)
    assert read.form == "offsets"
    truth = read.of_answers(floats)
    assert [m.value for m in read.measures(truth, floats)] == [100.0] * 3
    places[0, 0] += 4  # by 0.4 anchors; the box is about one wide
    places[1, 3] += 1000
    moved = {m.name: m.value for m in read.measures(truth, outputs(places, scores))}
    assert moved["boxes F1"] == 0.0
    elsewhere = np.zeros((50, 1))
    elsewhere[2:4] = 0.9
    other = {m.name: m.value for m in read.measures(truth, outputs(places, elsewhere))}
    assert other["boxes AP"] == 0.0
    with pytest.raises(DataError, match="offsets from anchors") as caught:
        read.of_labels(np.zeros((1, 1, 5)))
    assert "decoding" in caught.value.hint


def test_measures_against_float_and_labels() -> None:
    places = boxes(HERE, AWAY, [80, 80, 90, 90])
    floats = outputs(places, np.array([[0.9], [0.8], [0.1]]))
    read = BoxFormat.read_from(TWO, floats)
    truth = read.of_answers(floats)
    same = {m.name: m.value for m in read.measures(truth, floats)}
    assert same == {"boxes F1": 100.0, "boxes AP": 100.0, "boxes IoU": 100.0}
    moved = outputs(boxes(BESIDE, AWAY, HERE), np.array([[0.9], [0.4], [0.1]]))
    found = {m.name: m.value for m in read.measures(truth, moved)}
    assert found["boxes F1"] == pytest.approx(200 / 3)  # one in common of two and one
    assert found["boxes IoU"] == pytest.approx(80)
    labels = np.array([[[0, *HERE], [0, *AWAY], [-1, 0, 0, 0, 0]]])
    against = {m.name: m.value for m in read.measures(read.of_labels(labels), floats)}
    assert against["boxes AP"] == 100.0


def test_where_nobody_finds_anything_nothing_is_said() -> None:
    floats = outputs(boxes(HERE), np.array([[0.1]]))
    read = BoxFormat.read_from(TWO, floats)
    assert [m.value for m in read.measures(read.of_answers(floats), floats)] == [None] * 3
