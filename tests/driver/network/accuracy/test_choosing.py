"""What a network answers follows from shapes, or is said; what does not fit has a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefarm.errors import DataError, SettingsError

from driver.network.accuracy.choosing import box_outputs, kind_of
from driver.network.accuracy.kinds import AnswerKind
from driver.network.graph.ir import Graph, GraphInput, GraphOutput


def network(*shapes: tuple[int, ...], names: Sequence[str] = "ab", given: int = 32) -> Graph:
    """Outputs of these shapes for pictures of `given` pixels a side."""
    image = GraphInput(name="x", shape=(1, 3, given, given), axes=(0, 1, 2, 3))
    outputs = [GraphOutput(name=n, tensor=f"t.{n}") for n in names[: len(shapes)]]
    tensors = {o.tensor: shape for o, shape in zip(outputs, shapes, strict=True)}
    return Graph(
        name="net",
        inputs=(image,),
        outputs=tuple(outputs),
        nodes=(),
        shapes={"x": image.shape, **tensors},
    )


def whole(*shape: int) -> NDArray[Any]:
    return np.zeros(shape, np.int64)


def real(*shape: int) -> NDArray[Any]:
    return np.zeros(shape)


CLASSES, MAP, PICTURE = (1, 10), (1, 5, 16, 16), (1, 3, 64, 64)
SCORES, BOXES = (1, 90, 4), (1, 90, 4)


@pytest.mark.parametrize(
    ("shapes", "labels", "kind"),
    [
        ([CLASSES], None, "classes"),
        ([CLASSES], whole(7), "classes"),
        ([CLASSES], whole(7, 1), "classes"),
        ([(1, 10, 1, 1)], None, "classes"),
        ([CLASSES], real(7, 10), "values"),
        ([(1, 1)], None, "values"),
        ([(1, 1)], whole(7), "values"),
        ([(1, 1)], real(7), "values"),
        ([MAP], None, "pixels"),
        ([MAP], whole(7, 16, 16), "pixels"),
        ([MAP], real(7, 5, 16, 16), "values"),
        ([(1, 16, 16, 5)], whole(7, 16, 16), "pixels"),
        ([(1, 9, 5)], whole(7, 9), "pixels"),
        ([(1, 512, 1, 2)], None, "values"),
        ([PICTURE], None, "images"),
        ([PICTURE], whole(7, 3, 64, 64), "images"),
        ([(1, 1, 64, 64)], real(7, 64, 64), "images"),
        ([(1, 1, 64, 64)], whole(7, 64, 64), "images"),
        ([PICTURE], whole(7, 64, 64), "pixels"),
        ([SCORES, (1, 90, 2)], None, "boxes"),
        ([(1, 90, 21), BOXES], whole(7, 3, 5), "boxes"),
        ([(1, 90, 21)], None, "values"),
        ([CLASSES, MAP], None, "classes"),
    ],
)
def test_shapes_say_it(
    shapes: list[tuple[int, ...]], labels: NDArray[Any] | None, kind: AnswerKind
) -> None:
    assert kind_of(network(*shapes), labels) == kind


def test_what_has_the_inputs_shape_is_no_classes() -> None:
    assert kind_of(network((1, 3, 32, 32)), None) == "images"
    sounds = network((1, 640))
    sounds = replace(sounds, inputs=(GraphInput(name="x", shape=(1, 640), axes=(0, 1)),))
    assert kind_of(sounds, None) == "values"
    block = GraphInput(name="x", shape=(1, 64, 8, 8), axes=(0, 1, 2, 3))
    assert kind_of(replace(network((1, 64, 8, 8)), inputs=(block,)), None) == "values"
    assert kind_of(network((1, 64, 8, 8)), None) == "pixels"


def test_features_are_no_classes_of_pixels() -> None:
    assert kind_of(network((1, 512, 7, 7), given=224), None) == "values"
    assert kind_of(network((1, 21, 28, 28), given=224), None) == "pixels"


@pytest.mark.parametrize(
    ("shapes", "labels", "kind"),
    [
        ([CLASSES], None, "embeddings"),
        ([CLASSES], whole(7), "embeddings"),
        ([CLASSES], None, "values"),
        ([MAP], None, "values"),
        ([(1, 84, 8400)], None, "boxes"),
        ([(1, 84, 8400)], whole(7, 3, 5), "boxes"),
        ([PICTURE], None, "pixels"),
    ],
)
def test_or_it_is_said(
    shapes: list[tuple[int, ...]], labels: NDArray[Any] | None, kind: AnswerKind
) -> None:
    assert kind_of(network(*shapes), labels, kind) == kind


@pytest.mark.parametrize(
    ("shapes", "labels", "wanted", "why", "remedy"),
    [
        ([CLASSES], whole(7, 3), None, "labels have shape [7, 3] and type int64", "leave `y` out"),
        ([CLASSES], real(7) + 0.5, None, "outputs are a [1, 10]", "classes [samples]"),
        ([MAP], whole(7), "pixels", "--judge pixels: outputs are", "without the axis"),
        ([MAP], whole(7, 9, 9), None, "labels have shape [7, 9, 9]", "leave `y` out"),
        ([CLASSES], whole(7), "values", "labels have shape [7]", "the first output's shape"),
        ([(1, 90, 21), BOXES], whole(7, 3, 4), "boxes", "[7, 3, 4]", "class, left, top"),
        ([CLASSES], whole(3) + 10, None, "reach from 10 to 10, but the network tells 10", "0 to 9"),
        ([CLASSES], whole(3) - 1, None, "reach from -1 to -1", "0 to 9"),
        ([MAP], whole(3, 16, 16) + 5, None, "tells 5 classes apart", "0 to 4"),
        ([MAP], whole(3, 16, 16) + 255, None, "no place of the labels counts", "255"),
    ],
)
def test_labels_that_do_not_match(
    shapes: list[tuple[int, ...]],
    labels: NDArray[Any],
    wanted: AnswerKind | None,
    why: str,
    remedy: str,
) -> None:
    with pytest.raises(DataError) as caught:
        kind_of(network(*shapes), labels, wanted)
    assert why in caught.value.what
    assert remedy in caught.value.hint


@pytest.mark.parametrize(
    ("shapes", "wanted", "why"),
    [
        ([CLASSES], "boxes", "--judge boxes: outputs are a [1, 10]"),
        ([(1, 4, 90)], "boxes", "--judge boxes"),
        ([CLASSES], "pixels", "--judge pixels"),
        ([CLASSES], "images", "--judge images"),
        ([(1, 1)], "classes", "has one value a sample"),
        ([(1, 1)], "embeddings", "has one value a sample"),
        ([CLASSES], "faces", "--judge faces: no such kind"),
    ],
)
def test_outputs_that_cannot_be_that(
    shapes: list[tuple[int, ...]], wanted: AnswerKind, why: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        kind_of(network(*shapes), None, wanted)
    assert why in caught.value.what
    assert caught.value.hint


@pytest.mark.parametrize(
    ("labels", "why", "remedy"),
    [
        (np.array([3.0, 9.0]), "class numbers of type float64", "y.astype(int)"),
        (np.eye(10, dtype=np.float32)[[3, 9]], "rows of 10 values of which one is 1", "argmax"),
        (np.eye(10, dtype=np.int64)[[3, 9]], "rows of 10 values of which one is 1", "argmax"),
    ],
)
def test_classes_in_another_form_are_told_how_to_be_numbers(
    labels: NDArray[Any], why: str, remedy: str
) -> None:
    with pytest.raises(DataError, match=why) as caught:
        kind_of(network(CLASSES), labels)
    assert remedy in caught.value.hint
    if labels.ndim == 2:
        assert kind_of(network(CLASSES), labels, "values") == "values"


def test_values_that_are_no_classes_in_disguise() -> None:
    assert kind_of(network(CLASSES), 0.5 * np.eye(10)[[3, 9]]) == "values"
    assert kind_of(network((1, 1)), np.array([[3.0], [9.0]])) == "values"


def test_boxes_are_found_by_name_where_shapes_are_alike() -> None:
    for names in (("boxes", "scores"), ("scores", "boxes"), ("loc", "conf")):
        found = box_outputs(network(SCORES, BOXES, names=names))
        assert found is not None
        assert found.boxes in ("boxes", "loc")
        assert found.scores in ("scores", "conf")
