"""Every kind's measures on answers that one can judge by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driver.network.accuracy.classes import Classes, Pixels
from driver.network.accuracy.embeddings import Embeddings
from driver.network.accuracy.judging import Compare, Compared, judge_of
from driver.network.accuracy.kinds import AnswerKind
from driver.network.accuracy.metric import value_text
from driver.network.accuracy.reals import Reals
from driver.network.graph.ir import Graph, GraphInput, GraphOutput

Values = NDArray[Any]


def found(compare: Compare, truth: Any, answers: Values) -> dict[str, float | None]:
    return {each.name: each.value for each in compare.measures(truth, {"y": answers})}


def test_classes() -> None:
    scores = np.array([[0.1, 0.9], [0.8, 0.2], [0.7, 0.3]])
    kind = Classes()
    assert found(kind, kind.of_labels(np.array([[1], [0], [1]])), scores) == {
        "top-1": pytest.approx(200 / 3)
    }
    assert found(kind, kind.of_answers({"y": scores[::-1]}), scores) == {
        "top-1": pytest.approx(100 / 3)
    }


@pytest.mark.parametrize("axis", [1, 3])
def test_pixels(axis: int) -> None:
    kind = Pixels(axis=axis, classes=3)
    truth = kind.of_labels(np.array([[[0, 0], [1, 255]]]))
    said = np.array([[[0, 1], [1, 2]]])
    scores = np.moveaxis(np.eye(3)[said], -1, axis)
    assert found(kind, truth, scores) == {"mIoU": 50.0, "pixels": pytest.approx(200 / 3)}
    assert found(kind, kind.of_answers({"y": scores}), scores) == {"mIoU": 100.0, "pixels": 100.0}


def test_embeddings() -> None:
    kind = Embeddings()
    ours = np.array([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    truth = kind.of_answers({"y": np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])})
    cosines = (1.0, math.sqrt(0.5), 1.0)  # nothing is as far as nothing
    assert found(kind, truth, ours) == {
        "cosine": pytest.approx(100 * sum(cosines) / 3),
        "least cosine": pytest.approx(100 * math.sqrt(0.5)),
    }


def test_whose_neighbour() -> None:
    kind = Embeddings()
    directions = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0], [1.0, 1.0]])
    assert found(kind, kind.of_labels(np.array([7, 7, 8, 7, 9])), directions) == {
        "recall@1": pytest.approx(200 / 3)  # the third and the fifth have nobody
    }
    assert found(kind, kind.of_labels(np.arange(5)), directions) == {"recall@1": None}


def test_values() -> None:
    kind = Reals(images=False)
    truth = kind.of_labels(np.array([[0.0], [2.0]]))
    assert found(kind, truth, np.array([[0.5], [2.0]])) == {
        "R2": pytest.approx(87.5),
        "mean error": 0.25,
    }
    flat = kind.of_labels(np.ones((2, 1)))
    assert found(kind, flat, np.ones((2, 1)))["R2"] == 100.0
    assert found(kind, flat, np.zeros((2, 1)))["R2"] is None


def test_images() -> None:
    kind = Reals(images=True)
    truth = kind.of_labels(np.array([[[[0.0, 10.0]]]]))
    assert found(kind, truth, np.array([[[[1.0, 10.0]]]]))["PSNR"] == pytest.approx(
        10 * math.log10(100 / 0.5)
    )
    assert found(kind, truth, np.array([[[[0.0, 10.0]]]]))["PSNR"] == math.inf


def network(*shape: int) -> Graph:
    return Graph(
        name="net",
        inputs=(GraphInput(name="x", shape=(1, 4), axes=(0, 1)),),
        outputs=(GraphOutput(name="y", tensor="t"),),
        nodes=(),
        shapes={"x": (1, 4), "t": (1, *shape)},
    )


def rows(kind: AnswerKind, labels: Values | None, device: bool = True) -> list[Compared]:
    floats = {"y": np.array([[0.0, 1.0], [1.0, 0.0]])}
    integers = {"y": np.array([[1.0, 0.9], [1.0, 0.0]])}
    judge = judge_of(kind, network(2), floats, labels)
    return list(judge.compared(integers, floats if device else None))


def test_labels_come_first() -> None:
    first, second, ratio = rows("classes", np.array([1, 0]))
    assert (first.title, first.floats, first.reference, first.device) == (
        "top-1 of labels", 100.0, 50.0, 100.0,
    )  # fmt: skip
    assert (second.title, second.floats, second.reference) == ("top-1 of float", None, 50.0)
    assert (ratio.name, ratio.unit, ratio.device) == ("SNR", "dB", math.inf)


def test_without_labels_or_device() -> None:
    first, _ratio = rows("classes", None, device=False)
    assert (first.against, first.reference, first.device) == ("float", 50.0, None)


def test_answers_that_are_no_numbers_say_nothing() -> None:
    kind = Reals(images=True)
    truth = kind.of_labels(np.array([[0.0, 1.0, np.inf]]))
    assert set(found(kind, truth, np.array([[0.0, 1.0, np.inf]])).values()) == {None}
    floats = {"y": np.array([[0.0, -np.inf], [1.0, 0.0]])}
    rows = judge_of("classes", network(2), floats, None).compared(floats)
    assert [row.reference for row in rows] == [100.0, None]


def test_more_samples_than_are_looked_at_at_once() -> None:
    rng = np.random.default_rng(0)
    wanted, answers = rng.normal(size=(2, 50, 3, 4, 4))
    values = found(Reals(images=True), wanted.reshape(50, -1), answers)
    error = float(((answers - wanted) ** 2).mean())
    assert values["R2"] == pytest.approx(100 * (1 - error / wanted.var()))
    assert values["PSNR"] == pytest.approx(10 * math.log10(np.ptp(wanted) ** 2 / error))
    assert values["mean error"] == pytest.approx(np.abs(answers - wanted).mean())
    judge = judge_of("values", network(3, 4, 4), {"y": wanted}, None)
    ratio = judge.compared({"y": answers})[-1].reference
    assert ratio == pytest.approx(10 * math.log10((wanted**2).mean() / error))


def test_values_in_words() -> None:
    assert value_text("%", 97.25) == "97.2 %"
    assert value_text("dB", math.inf) == "exact"
    assert value_text("dB", -math.inf) == "-inf dB"
    assert value_text("", 0.012345) == "0.01235"
    assert value_text("%", None) == "-"
