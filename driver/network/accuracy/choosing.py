"""What a network answers, by the shapes of its outputs and of its labels, or as the user says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.errors import DataError, SettingsError

from driver.network.accuracy.kinds import ANSWER_KINDS, LABELS_OF, AnswerKind, check_kind
from driver.network.graph.ir import Graph, Shape

IGNORED: Final = 255
"""The class of places that do not count, as data sets for segmentation have it."""
BOX_LABEL: Final = 5
_COORDINATES: Final = 4
_COLOURS: Final = (1, 3, 4)
_COARSEST: Final = 16
"""By how much a map of classes is smaller than the input at most; coarser ones are features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxOutputs:
    """Where a network has its boxes: [N, A, 4] and scores [N, A, C], or both in one output.

    Attributes:
        boxes, scores: names of the outputs; the same for both in one.
    """

    boxes: str
    scores: str


def kind_of(
    graph: Graph, labels: NDArray[Any] | None, wanted: AnswerKind | None = None
) -> AnswerKind:
    """What the network answers.

    Args:
        labels: [samples, ...] if there are any.
        wanted: what the user says that it is; None: as shapes say.

    Raises:
        DataError: the labels fit no kind, or not the wanted one.
        SettingsError: the outputs cannot be of the wanted kind, or there is no such kind.
    """
    if wanted is not None:
        check_kind(wanted)
        _check_outputs(graph, wanted)
    kinds: Sequence[AnswerKind] = (wanted,) if wanted is not None else ANSWER_KINDS
    if labels is None:
        return wanted or _by_outputs(graph)
    if wanted is None:
        _check_form(graph, labels)
    for kind in kinds:
        if _fits(graph, labels, kind, said=wanted is not None):
            _check_classes(graph, labels, kind)
            return kind
    raise DataError(
        f"labels have shape {list(labels.shape)} and type {labels.dtype}; {_needed(graph, wanted)}",
        f"for {wanted}, {LABELS_OF[wanted]}"
        if wanted
        else "labels as the network answers: classes [samples], maps or values of the output's"
        " shape, boxes [samples, boxes, 5]; or leave `y` out",
    )


def first_shape(graph: Graph) -> Shape:
    """The first output's shape, with the axis of samples."""
    return graph.shapes[graph.outputs[0].tensor]


def class_axis(answer: Shape, labels: Shape) -> int | None:
    """Which axis of the answers [N, ...] labels [N, ...] lack; the channels' before the last."""
    for axis in (1, len(answer) - 1):
        rest = (*answer[1:axis], *answer[axis + 1 :])
        if len(answer) > 2 and answer[axis] > 1 and rest == tuple(labels[1:]):
            return axis
    return None


CHANCE_WORDS: Final[Mapping[AnswerKind, tuple[str, str]]] = {
    "classes": (
        "no better than always the commonest class",
        "labels in the network's order, and inputs scaled as in training",
    ),
    "boxes": (
        "none that is in the labels",
        "labels with the network's class numbers, and left, top, right, bottom in its coordinates",
    ),
    "images": ("no better than always the labels' mean", "labels scaled as the network's answers"),
    "values": ("no better than always the labels' mean", "labels scaled as the network's answers"),
}
"""What `chance_accuracy` is, in words, and what to try where a network is no better."""


def chance_accuracy(labels: NDArray[Any] | None, kind: AnswerKind) -> float | None:
    """What a guess reaches by the kind's first measure against labels, %; None if nobody knows."""
    if labels is None or kind not in CHANCE_WORDS:
        return None
    if kind != "classes":
        return 0.0
    return 100 * max(float((labels == most).mean()) for most in np.unique(labels))


def box_outputs(graph: Graph) -> BoxOutputs | None:
    """Where boxes are if two outputs are [N, A, 4] and [N, A, C], or one of three axes has both."""
    shapes = {o.name: graph.shapes[o.tensor] for o in graph.outputs}
    many = {name: s for name, s in shapes.items() if len(s) == 3 and s[1] > 1}
    for boxes, shape in sorted(many.items(), key=lambda item: not _sounds_like_boxes(item[0])):
        if shape[2] != _COORDINATES:
            continue
        for scores, other in many.items():
            if scores != boxes and other[1] == shape[1]:
                return BoxOutputs(boxes=boxes, scores=scores)
    return None


def one_box_output(graph: Graph) -> BoxOutputs | None:
    """The only output, if it can hold boxes and scores; shapes alone do not say that it does."""
    shape = first_shape(graph)
    if len(graph.outputs) != 1 or len(shape) != 3 or min(shape[1:]) <= _COORDINATES:
        return None
    name = graph.outputs[0].name
    return BoxOutputs(boxes=name, scores=name)


def _sounds_like_boxes(name: str) -> bool:
    return any(word in name.lower() for word in ("box", "loc"))


def _by_outputs(graph: Graph) -> AnswerKind:
    """Without labels. What has the input's shape is the same thing again: rebuilt, or mended."""
    if box_outputs(graph) is not None:
        return "boxes"
    shape = first_shape(graph)
    if any(shape == given.shape for given in graph.inputs):
        return "images" if len(shape) == 4 and shape[1] in _COLOURS else "values"
    if len(shape) == 4 and min(shape[2:]) > 1:
        return _of_planes(graph, shape)
    return "classes" if _classes(shape) > 1 else "values"


def _of_planes(graph: Graph, shape: Shape) -> AnswerKind:
    """Of an output [N, C, H, W] with pixels."""
    if shape[1] in _COLOURS:
        return "images"
    given = graph.inputs[0].shape
    fine = len(given) == 4 and all(
        out * _COARSEST >= into for out, into in zip(shape[2:], given[2:], strict=True)
    )
    return "pixels" if fine else "values"


def _classes(shape: Shape) -> int:
    """How many classes one score each can tell apart: all values but for axes of extent 1."""
    long = [extent for extent in shape[1:] if extent != 1]
    return long[0] if len(long) == 1 else 0


def _fits(graph: Graph, labels: NDArray[Any], kind: AnswerKind, *, said: bool) -> bool:
    """Whether labels have the form of that kind."""
    shape, whole = first_shape(graph), labels.dtype.kind in "iu"
    long = _long(labels.shape)
    match kind:
        case "classes":
            return whole and long == () and math.prod(shape[1:]) > 1
        case "embeddings":
            return said and whole and long == ()
        case "pixels":
            return whole and class_axis(shape, labels.shape) is not None
        case "boxes":
            there = labels.ndim == 3 and labels.shape[2] == BOX_LABEL
            return there and (said or box_outputs(graph) is not None)
        case "images":
            planes = len(shape) == 4 and shape[1] in _COLOURS
            return long == _long(shape) and (said or planes)
        case "values":
            return long == _long(shape)


def _long(shape: Shape) -> Shape:
    """The axes behind the samples that have more than one entry."""
    return tuple(extent for extent in shape[1:] if extent != 1)


def _check_outputs(graph: Graph, wanted: AnswerKind) -> None:
    shape = first_shape(graph)
    if wanted == "boxes" and (box_outputs(graph) or one_box_output(graph)) is None:
        raise SettingsError(
            f"--judge boxes: outputs are {_outputs(graph)}",
            "boxes need outputs [N, boxes, 4] and [N, boxes, classes], or one with both:"
            " [N, 4 + classes, boxes] or [N, boxes, 5 + classes]",
        )
    if wanted in ("pixels", "images") and len(shape) < 3:
        raise SettingsError(
            f"--judge {wanted}: outputs are {_outputs(graph)}", "--judge classes, or values"
        )
    if wanted in ("classes", "embeddings") and math.prod(shape[1:]) < 2:
        raise SettingsError(
            f"--judge {wanted}: the first output has one value a sample", "--judge values"
        )


def _check_form(graph: Graph, labels: NDArray[Any]) -> None:
    """That classes are class numbers, and not the same in another form.

    Raises:
        DataError: they are, with what makes numbers of them.
    """
    many = _classes(first_shape(graph))
    if many < 2 or labels.size == 0:
        return
    long = _long(labels.shape)
    if long == () and labels.dtype.kind == "f" and (labels == np.rint(labels)).all():
        raise DataError(
            f"labels are class numbers of type {labels.dtype}",
            "y.astype(int): classes are integers",
        )
    rows = labels.reshape(len(labels), -1)
    if long == (many,) and ((rows != 0).sum(axis=1) == 1).all() and (rows.max(axis=1) == 1).all():
        raise DataError(
            f"labels are rows of {many} values of which one is 1: a class each",
            "y.reshape(len(y), -1).argmax(axis=1); or --judge values, if they are meant as values",
        )


def _check_classes(graph: Graph, labels: NDArray[Any], kind: AnswerKind) -> None:
    """That class numbers are those of the network."""
    shape = first_shape(graph)
    if kind == "classes":
        classes, counted = math.prod(shape[1:]), labels
    elif kind == "pixels":
        classes = shape[class_axis(shape, labels.shape) or 1]
        counted = labels[counts_of(labels, classes)]
        if not counted.size:
            raise DataError("no place of the labels counts", LABELS_OF[kind])
    else:
        return
    if not ((counted >= 0) & (counted < classes)).all():
        raise DataError(
            f"labels reach from {counted.min()} to {counted.max()},"
            f" but the network tells {classes} classes apart",
            f"labels are class numbers from 0 to {classes - 1}",
        )


def counts_of(labels: NDArray[Any], classes: int) -> NDArray[np.bool_]:
    """Which places of a map of classes count."""
    ignored = labels < 0
    return np.asarray(~(ignored | (labels == IGNORED) if classes <= IGNORED else ignored))


def _needed(graph: Graph, wanted: AnswerKind | None) -> str:
    which = f"--judge {wanted}: " if wanted else ""
    return f"{which}outputs are {_outputs(graph)}"


def _outputs(graph: Graph) -> str:
    return ", ".join(f"{o.name} {list(graph.shapes[o.tensor])}" for o in graph.outputs)
