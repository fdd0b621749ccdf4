"""Classes: how often the highest score is that of the right class, of samples or of pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.network.accuracy.choosing import counts_of
from driver.network.accuracy.metric import Metric
from driver.network.graph.parts import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """The class of each sample: scores are the first output's values."""

    def of_labels(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Class numbers [samples]."""
        return labels.reshape(-1).astype(np.int64)

    def of_answers(self, answers: Arrays) -> NDArray[np.int64]:
        """The same, as the network says."""
        scores = next(iter(answers.values()))
        return np.asarray(scores.reshape(len(scores), -1).argmax(axis=1))

    def measures(self, truth: NDArray[np.int64], answers: Arrays) -> tuple[Metric, ...]:
        """The share of samples with that class."""
        right = float((self.of_answers(answers) == truth).mean())
        return (Metric(name="top-1", unit="%", value=100 * right),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pixels:
    """The class of each place: scores [N, C, ...], or with the classes last."""

    axis: int
    classes: int

    def of_labels(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Class numbers [samples, ...]; below 0 where a place does not count."""
        return np.where(counts_of(labels, self.classes), labels, -1).astype(np.int64)

    def of_answers(self, answers: Arrays) -> NDArray[np.int64]:
        """The same, as the network says."""
        return np.asarray(next(iter(answers.values())).argmax(axis=self.axis))

    def measures(self, truth: NDArray[np.int64], answers: Arrays) -> tuple[Metric, ...]:
        """Intersection by union, averaged over the classes that there are, and right places."""
        counted = truth >= 0
        pairs = truth[counted] * self.classes + self.of_answers(answers)[counted]
        table = np.bincount(pairs, minlength=self.classes**2).reshape(self.classes, self.classes)
        both = table.diagonal().astype(np.float64)
        there = table.sum(axis=1)
        union = there + table.sum(axis=0) - both
        mean = float((both[there > 0] / union[there > 0]).mean())
        right = float(both.sum() / table.sum())
        return (
            Metric(name="mIoU", unit="%", value=100 * mean),
            Metric(name="pixels", unit="%", value=100 * right),
        )
