"""How many answers noise changes: expected, which few samples tell better than changes counted.

Whether noise changes the class of one sample is a matter of luck: of 100 samples three change, or
six. How far the highest score is above the second, and how much noise lies on that distance, is
known of every sample. So the share of samples that change is the mean chance that noise, normal and
as large as on the samples, is more than the distance:

    score   a ----------        d = a - b, noise of d ~ N(0, s):  chance = Phi(-d / s)
            b -----

Outputs that are no scores of classes change by the share of noise in them.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from driver.network.accuracy.choosing import kind_of
from driver.network.graph.ir import Graph
from driver.network.graph.parts import Arrays
from driver.network.integer.noise import noise_between

_LEAST_PROBABILITY: Final = 1e-7
"""That is told from none: a step of float32 next to 1."""
_SUM_OFF: Final = 1e-3
"""By how much the probabilities of a sample may miss 1."""


def changed_share(graph: Graph, floats: Arrays, integers: Arrays) -> float:
    """The share of answers that the integers change, expected; 0 to 1.

    Args:
        graph: the float network; its outputs' shapes say whether they are scores of classes.
        floats, integers: outputs by name of the two networks, [samples, ...].
    """
    if kind_of(graph, None) == "classes":
        first = graph.outputs[0].name
        return expected_changes(floats[first], integers[first])
    noise = [noise_between(floats[name], integers[name]) for name in floats]
    shares = [each.noise / each.signal if each.signal else float(each.noise > 0) for each in noise]
    return min(1.0, max(1.0 if math.isnan(share) else share for share in shares))


def expected_changes(floats: NDArray[Any], integers: NDArray[Any]) -> float:
    """The share of samples whose highest score is expected to become another one's, 0 to 1.

    Probabilities count by their logarithms, as noise is small where they are near 0 and 1.

    Args:
        floats, integers: scores [samples, ...] of at least two classes.
    """
    return expected_loss(floats, integers, None)


def expected_loss(
    floats: NDArray[Any], integers: NDArray[Any], labels: NDArray[Any] | None
) -> float:
    """The share of samples that are expected to be right no more, less those that become right.

    Args:
        floats, integers: as for `expected_changes`.
        labels: class numbers [samples]; None: the float network's answers are right.
    """
    right, found = _scores(floats), _scores(integers)
    if not (np.isfinite(right).all() and np.isfinite(found).all()):
        return 1.0
    rows, order = np.arange(len(right)), np.argpartition(-right, 1, axis=1)
    first, second = order[:, 0], order[:, 1]
    distance = right[rows, first] - right[rows, second]
    off = found[rows, first] - found[rows, second] - distance
    spread = math.sqrt(float(np.square(off).mean()))
    if not spread:
        return 0.0
    loses = np.ones(len(right), bool)
    if labels is not None:
        label = labels.reshape(-1).astype(np.int64)
        loses = first == label
        distance = np.where(loses, distance, right[rows, first] - right[rows, label])
    chances = np.array([math.erfc(each / spread / math.sqrt(2)) / 2 for each in distance])
    return float(np.where(loses, chances, -chances).mean())


def _scores(values: NDArray[Any]) -> NDArray[np.float64]:
    """[samples, classes]: what noise is added to."""
    flat = values.reshape(len(values), -1).astype(np.float64)
    if (flat >= 0).all() and np.allclose(flat.sum(axis=1), 1, atol=_SUM_OFF):
        return np.asarray(np.log(np.maximum(flat, _LEAST_PROBABILITY)))
    return flat
