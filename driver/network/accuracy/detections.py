"""Detections of one sample: suppressed where they overlap, matched, and ranked as COCO does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

OVERLAP: Final = 0.5
"""IoU from which on two boxes are the same thing."""
THRESHOLDS: Final = tuple(0.5 + 0.05 * step for step in range(10))
"""IoUs that COCO's AP is the mean over."""
_MOST: Final = 100
"""Detections of a sample at most, as in COCO."""
_MOST_CANDIDATES: Final = 1000
"""Boxes that are looked at for each sample, the highest scores first."""
_RECALLS: Final = np.linspace(0.0, 1.0, 101)
"""Where COCO reads the precision."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Detections:
    """Boxes [n, 4] (left, top, right, bottom) with scores and classes [n], best score first."""

    boxes: Reals
    scores: Reals
    classes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scores)

    def above(self, score: float) -> Detections:
        """Those with at least that score."""
        return self.part(self.scores >= score)

    def part(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Detections:
        """Some of them."""
        return Detections(
            boxes=self.boxes[which], scores=self.scores[which], classes=self.classes[which]
        )


def detections(boxes: Reals, scores: Reals, least: float) -> Detections:
    """What boxes [A, 4] with scores [A, C] say, from a score on, one of each overlapping group."""
    places, classes = np.nonzero(scores >= least)
    order = np.argsort(-scores[places, classes], kind="stable")[:_MOST_CANDIDATES]
    places, classes = places[order], classes[order]
    every = Detections(boxes=boxes[places], scores=scores[places, classes], classes=classes)
    return every.part(_kept(every)[:_MOST])


def _kept(every: Detections) -> NDArray[np.int64]:
    """Those that no better one of the same class overlaps."""
    alive = np.ones(len(every), bool)
    for at in range(len(every)):
        if alive[at]:
            behind = np.flatnonzero(alive & (every.classes == every.classes[at]))
            behind = behind[behind > at]
            alive[behind[overlaps(every.boxes[at : at + 1], every.boxes[behind])[0] > OVERLAP]] = 0
    return np.flatnonzero(alive)


def overlaps(a: Reals, b: Reals) -> Reals:
    """Intersection by union of boxes [n, 4] with boxes [m, 4]: [n, m]."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    both = np.maximum(high - low, 0).prod(axis=2)
    union = _area(a)[:, None] + _area(b)[None] - both
    return np.asarray(np.divide(both, union, out=np.zeros_like(both), where=union > 0))


def _area(boxes: Reals) -> Reals:
    return np.asarray(np.maximum(boxes[:, 2:] - boxes[:, :2], 0).prod(axis=1))


def matched(truth: Detections, found: Detections, least: float) -> Reals:
    """The IoU of each found box with the true one that it takes; 0 for none.

    The best score chooses first, among the boxes of its class that nobody took, the nearest one.
    """
    free = np.ones(len(truth), bool)
    taken = np.zeros(len(found))
    table = overlaps(found.boxes, truth.boxes)
    for at in range(len(found)):
        fits = np.where(free & (truth.classes == found.classes[at]), table[at], 0.0)
        if fits.size and fits.max() >= least:
            best = int(fits.argmax())
            free[best] = False
            taken[at] = fits[best]
    return taken


def average_precision(
    truth: Sequence[Detections], found: Sequence[Detections], least: float
) -> float | None:
    """The mean of all classes' AP at one IoU, 0 to 1; None where the truth has no box."""
    hits = [matched(t, f, least) > 0 for t, f in zip(truth, found, strict=True)]
    true = np.concatenate([t.classes for t in truth])
    classes = np.concatenate([f.classes for f in found])
    scores = np.concatenate([f.scores for f in found])
    hit = np.concatenate(hits)
    each = []
    for number in np.unique(true):
        mine = classes == number
        order = np.argsort(-scores[mine], kind="stable")
        each.append(_area_below(hit[mine][order], int((true == number).sum())))
    return float(np.mean(each)) if each else None


def _area_below(hits: NDArray[np.bool_], there: int) -> float:
    """Of precision over recall, with hits in the order of scores."""
    right = np.cumsum(hits)
    recall, precision = right / there, right / np.arange(1, len(hits) + 1)
    falling = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
    return float(falling[np.searchsorted(recall, _RECALLS)].mean())
