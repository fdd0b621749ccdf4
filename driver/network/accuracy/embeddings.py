"""Embeddings: the cosine to the float network's, and whose neighbour each sample is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.network.accuracy.metric import Metric
from driver.network.graph.parts import Arrays

_ROWS_AT_ONCE = 1024
"""Of the table of all samples against all; it is never whole in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings:
    """A direction for each sample: the first output's values."""

    def of_labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        """The identity of each sample."""
        return labels.reshape(-1).astype(np.int64)

    def of_answers(self, answers: Arrays) -> NDArray[Any]:
        """Directions [samples, values] of length 1; a sample without one has length 0."""
        values = next(iter(answers.values()))
        flat = values.reshape(len(values), -1).astype(np.float64)
        length = np.linalg.norm(flat, axis=1, keepdims=True)
        return np.asarray(flat / np.where(length > 0, length, 1.0))

    def measures(self, truth: NDArray[Any], answers: Arrays) -> tuple[Metric, ...]:
        """Against directions the mean and the least cosine; against identities recall at 1."""
        ours = self.of_answers(answers)
        if truth.ndim == 1:
            return (Metric(name="recall@1", unit="%", value=_recall(ours, truth)),)
        cosines = (ours * truth).sum(axis=1)
        silent = (np.abs(ours).sum(axis=1) == 0) & (np.abs(truth).sum(axis=1) == 0)
        cosines = np.where(silent, 1.0, cosines)
        return (
            Metric(name="cosine", unit="%", value=100 * float(cosines.mean())),
            Metric(name="least cosine", unit="%", value=100 * float(cosines.min())),
        )


def _recall(directions: NDArray[Any], identities: NDArray[Any]) -> float | None:
    """How often the nearest other sample is of the same identity, of those that have another."""
    _, which, counts = np.unique(identities, return_inverse=True, return_counts=True)
    paired = counts[which] > 1
    if not paired.any():
        return None
    right = np.zeros(len(directions), bool)
    for start in range(0, len(directions), _ROWS_AT_ONCE):
        near = directions[start : start + _ROWS_AT_ONCE] @ directions.T
        rows = np.arange(len(near))
        near[rows, start + rows] = -np.inf
        right[start : start + len(near)] = (
            identities[near.argmax(axis=1)] == identities[start : start + len(near)]
        )
    return 100 * float(right[paired].mean())
