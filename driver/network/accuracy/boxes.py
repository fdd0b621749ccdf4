"""Boxes: whether the same things are found in the same places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from tilefarm.errors import DataError

from driver.network.accuracy.choosing import BOX_LABEL, BoxOutputs
from driver.network.accuracy.detections import (
    OVERLAP,
    THRESHOLDS,
    Detections,
    average_precision,
    detections,
    matched,
)
from driver.network.accuracy.metric import Metric
from driver.network.graph.parts import Arrays

_FOUND: Final = 0.5
"""The score, as a probability, from which on a box counts as found."""
_RANKED: Final = 0.05
"""That from which on boxes are ranked against labels."""
_MOSTLY: Final = 0.99
_NEAR_1: Final = 1e-2

_APART: Final = 1000.0
"""By how much boxes of different anchors are moved apart, in widths of an anchor."""
_CENTER_STEP, _EXTENT_STEP = 0.1, 0.2
"""What offsets of 1 stand for, as detectors with anchors are usually trained: of the anchor's
extents, and of the logarithm of the box's."""
_LONGEST: Final = 4.0
"""The logarithm of the largest extent: more is no box, and must not overflow."""

Form = Literal["corners", "centers", "offsets"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxFormat:
    """How outputs are read.

    Attributes:
        form: left, top, right, bottom; or the center, width and height; or how far these are from
            those of an anchor that only the user's program knows. Such boxes are compared anchor
            by anchor: what two have in common does not depend on where their anchor is.
        logits: scores are no probabilities yet.
        background: class 0 is nothing, as where the scores of a box sum to 1.
    """

    outputs: BoxOutputs
    form: Form
    logits: bool
    background: bool

    @classmethod
    def read_from(cls, outputs: BoxOutputs, floats: Arrays) -> Self:
        """As the float network's answers show."""
        boxes, scores = _parts(outputs, floats)
        logits = bool(scores.min() < -_NEAR_1 or scores.max() > 1 + _NEAR_1)
        sums = scores.sum(axis=2)
        background = scores.shape[2] > 1 and bool((np.abs(sums - 1) < _NEAR_1).mean() > _MOSTLY)
        return cls(outputs=outputs, form=_form(boxes), logits=logits, background=background)

    def of_labels(self, labels: NDArray[Any]) -> list[Detections]:
        """Boxes of labels [samples, boxes, 5]: class, left, top, right, bottom.

        Raises:
            DataError: those of the network are offsets.
        """
        if self.form == "offsets":
            raise DataError(
                "labels are places, but the network's boxes are offsets from anchors",
                "export the network with its decoding, or leave `y` out",
            )
        rows = labels.reshape(len(labels), -1, BOX_LABEL).astype(np.float64)
        return [
            Detections(
                boxes=row[row[:, 0] >= 0, 1:],
                scores=np.ones(int((row[:, 0] >= 0).sum())),
                classes=row[row[:, 0] >= 0, 0].astype(np.int64),
            )
            for row in rows
        ]

    def of_answers(self, answers: Arrays, least: float = _FOUND) -> list[Detections]:
        """What the network finds."""
        boxes, scores = _parts(self.outputs, answers)
        if self.form == "offsets":
            boxes = _beside_one_another(boxes)
        if self.form != "corners":
            half = boxes[..., 2:] / 2
            boxes = np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], axis=2)
        if self.logits:
            scores = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
        if self.background:
            scores = np.concatenate([np.zeros_like(scores[..., :1]), scores[..., 1:]], axis=2)
        return [detections(b, s, least) for b, s in zip(boxes, scores, strict=True)]

    def measures(self, truth: list[Detections], answers: Arrays) -> tuple[Metric, ...]:
        """Found boxes in common (F1 at IoU 0.5), AP as COCO has it, and the IoU of pairs."""
        ranked = self.of_answers(answers, _RANKED)
        found = [each.above(_FOUND) for each in ranked]
        pairs = np.concatenate([matched(t, f, OVERLAP) for t, f in zip(truth, found, strict=True)])
        every = sum(map(len, truth)) + len(pairs)
        same = 200 * int((pairs > 0).sum()) / every if every else None
        points = [average_precision(truth, ranked, least) for least in THRESHOLDS]
        return (
            Metric(name="boxes F1", unit="%", value=same),
            Metric(name="boxes AP", unit="%", value=_mean([p for p in points if p is not None])),
            Metric(name="boxes IoU", unit="%", value=_mean(pairs[pairs > 0])),
        )


def _mean(values: Sequence[float] | NDArray[np.float64]) -> float | None:
    """Of shares, in %; None where there are none."""
    return 100 * float(np.mean(values)) if len(values) else None


def _parts(outputs: BoxOutputs, answers: Arrays) -> tuple[NDArray[Any], NDArray[Any]]:
    """Boxes [N, A, 4] and scores [N, A, C].

    An output with both has the boxes behind one another in its longer axis: [N, 4 + C, A], or
    [N, A, 5 + C] where the fifth number is what every score is multiplied by.
    """
    boxes = answers[outputs.boxes].astype(np.float64)
    if outputs.boxes != outputs.scores:
        return boxes, answers[outputs.scores].astype(np.float64)
    if boxes.shape[1] < boxes.shape[2]:
        whole = boxes.transpose(0, 2, 1)
        return whole[..., :4], whole[..., 4:]
    if boxes.shape[2] == BOX_LABEL:
        return boxes[..., :4], boxes[..., 4:]
    return boxes[..., :4], boxes[..., 4:5] * boxes[..., 5:]


def _form(boxes: NDArray[Any]) -> Form:
    """What the four numbers are."""
    if (boxes[..., 2:] >= boxes[..., :2]).all(axis=2).mean() > _MOSTLY:
        return "corners"
    if (boxes[..., 2:] >= 0).all(axis=2).mean() > _MOSTLY:
        return "centers"
    return "offsets"


def _beside_one_another(offsets: NDArray[Any]) -> NDArray[Any]:
    """Centers and extents of offsets [N, A, 4] from anchors of extent 1, far from one another."""
    centers = _CENTER_STEP * offsets[..., :2]
    centers[..., 0] += _APART * np.arange(offsets.shape[1])
    extents = np.exp(np.clip(_EXTENT_STEP * offsets[..., 2:], -_LONGEST, _LONGEST))
    return np.concatenate([centers, extents], axis=2)
