"""What a cost model is to the search, and the features that it sees."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.space import ESTIMATE, SearchSpace

from tuner.search import Rows

Floats: TypeAlias = NDArray[np.float64]


class CostModel(Protocol):
    """Learns to order candidates by cost."""

    def fit(self, features: Floats, costs: Floats, weights: Floats) -> None:
        """Learn from candidates: features [n, f], costs [n], weights [n]. Forgets earlier fits."""
        ...

    def predict(self, features: Floats) -> Floats:
        """The expected cost of every row; lower is better."""
        ...


class Featurizer:
    """Rows of a space as features: log2(1 + value) of every variable.

    Constants are features too: between spaces with the same variables they differ.
    """

    def __init__(self, space: SearchSpace) -> None:
        self.kind = tuple(v.name for v in space.variables)
        """Spaces of the same kind have features that mean the same."""
        self._estimate = next((i for i, n in enumerate(self.kind) if n == ESTIMATE), None)

    @property
    def has_estimate(self) -> bool:
        """Whether the space says what its points cost."""
        return self._estimate is not None

    def __call__(self, rows: Rows) -> Floats:
        return _logs(rows)

    def estimates(self, rows: Rows) -> Floats:
        """The logarithm (base 2) of what the space itself says of cost; the same if nothing."""
        if self._estimate is None:
            return np.zeros(len(rows))
        return _logs(rows[:, self._estimate])


def _logs(values: Rows) -> Floats:
    return np.asarray(np.sign(values) * np.log2(1.0 + np.abs(values)), dtype=np.float64)
