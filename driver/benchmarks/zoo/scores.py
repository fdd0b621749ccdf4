"""How good a network's answers are: one number, larger is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from driver.benchmarks.zoo.recipes import Metric


def accuracy(inputs: NDArray[Any], scores: NDArray[Any], labels: NDArray[np.int64]) -> float:
    """The share of samples whose label's score is highest; scores are [samples, classes]."""
    del inputs
    return float((scores.reshape(len(scores), -1).argmax(axis=1) == labels).mean())


def auc(inputs: NDArray[Any], rebuilt: NDArray[Any], labels: NDArray[np.int64]) -> float:
    """How often a clip with label 1 is rebuilt worse than one with label 0; ties count half.

    A clip's error is the mean squared error of its windows, which lie one after another.
    """
    errors = ((rebuilt - inputs) ** 2).reshape(len(labels), -1).mean(axis=1)
    odd, usual = errors[labels == 1][:, None], errors[labels == 0][None]
    if not odd.size or not usual.size:
        return float("nan")
    return float(((odd > usual) + 0.5 * (odd == usual)).mean())


METRICS: Final[
    Mapping[Metric, Callable[[NDArray[Any], NDArray[Any], NDArray[np.int64]], float]]
] = {"accuracy": accuracy, "auc": auc}
"""The function of each metric: inputs, outputs, labels."""


def score_text(metric: Metric, value: float | None) -> str:
    """A score as people write it; a dash for none."""
    if value is None or np.isnan(value):
        return "-"
    return f"{100 * value:.1f} %" if metric == "accuracy" else f"{value:.3f}"
