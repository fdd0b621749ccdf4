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

    def fit(self, features: Floats, cycles: Floats) -> None:
        """Learn from measured candidates: features [n, f], cycles [n] > 0. Forgets earlier fits."""
        ...

    def predict(self, features: Floats) -> Floats:
        """A score per row; lower is better. Only the order of scores means anything."""
        ...


class Featurizer:
    """Rows of a space as features: log2(1 + value) of every variable that can vary."""

    def __init__(self, space: SearchSpace) -> None:
        self._columns = [i for i, v in enumerate(space.variables) if len(v.domain) != 1]

    def __call__(self, rows: Rows) -> Floats:
        values = rows[:, self._columns].astype(np.float64)
        return np.asarray(np.sign(values) * np.log2(1.0 + np.abs(values)))
