"""What a cost model is to the search, and the features that it sees."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.space import SearchSpace

from tuner.search import Rows

Floats: TypeAlias = NDArray[np.float64]


class CostModel(Protocol):
    """Learns to order candidates by cost."""

    def fit(self, features: Floats, costs: Floats) -> None:
        """Learn from measured candidates: features [n, f], costs [n]. Forgets earlier fits."""
        ...

    def predict(self, features: Floats) -> Floats:
        """The expected cost of every row; lower is better."""
        ...


class Featurizer:
    """Rows of a space as features: log2(1 + value) of every variable that can vary."""

    def __init__(self, space: SearchSpace) -> None:
        self._columns = [i for i, v in enumerate(space.variables) if len(v.domain) != 1]
        self._estimates = [
            i for i, v in enumerate(space.variables) if not v.tunable and v.name.endswith("_cycles")
        ]

    def __call__(self, rows: Rows) -> Floats:
        return _logs(rows[:, self._columns])

    def estimate(self, rows: Rows) -> Floats | None:
        """What the space itself says about cost, lower is better; None when it says nothing.

        Derived variables named `*_cycles` are estimates of parts of the cost. Which of them overlap
        is not said, so this is the logarithm of their geometric mean: better in each is better.
        """
        if not self._estimates:
            return None
        return np.asarray(_logs(rows[:, self._estimates]).mean(axis=1))


def _logs(values: Rows) -> Floats:
    return np.asarray(np.sign(values) * np.log2(1.0 + np.abs(values)), dtype=np.float64)
