"""The cost model on gradient-boosted trees; the only file that imports xgboost."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tuner.cost_model import Floats

_ROUNDS: Final = 40


@dataclass(slots=True)
class XgbModel:
    """Boosted regression trees, small ones for few samples.

    One thread: proposing shares the machine with compilers and simulated devices. xgboost is
    imported by the first fit, because importing it takes longer than a first batch of kernels.
    """

    seed: int = 0
    _booster: Any = field(default=None, init=False)
    _mean: float = field(default=0.0, init=False)
    _spread: float = field(default=1.0, init=False)

    def fit(self, features: Floats, costs: Floats, weights: Floats) -> None:
        xgboost = _imported()

        self._mean, self._spread = float(costs.mean()), float(costs.std()) or 1.0
        labels = (costs - self._mean) / self._spread
        parameters = {
            "objective": "reg:squarederror",
            "seed": self.seed % (1 << 31),
            "nthread": 1,
            "tree_method": "hist",
            "max_depth": 5,
            "eta": 0.3,
            "min_child_weight": 1,
            "subsample": 0.9,
            "colsample_bytree": 0.5,
            "lambda": 0.5,
            "verbosity": 0,
        }
        data = xgboost.DMatrix(features, label=labels, weight=weights, nthread=1)
        self._booster = xgboost.train(parameters, data, _ROUNDS)

    def predict(self, features: Floats) -> Floats:
        raw = self._booster.inplace_predict(features)
        scores: Floats = np.asarray(raw, dtype=np.float64)
        return self._mean + self._spread * scores

    def importance(self, features: int) -> Floats:
        """How often each feature decides in the trees of the last fit [features]."""
        found = self._booster.get_score(importance_type="weight")
        return np.asarray([found.get(f"f{at}", 0.0) for at in range(features)], dtype=np.float64)


def _imported() -> Any:
    """The library, imported without scikit-learn.

    xgboost imports scikit-learn wherever it finds it, for classes that we do not use; that takes
    three times as long as all the rest. A None in the table of modules means "not installed".
    """
    if "xgboost" not in sys.modules and "sklearn" not in sys.modules:
        sys.modules["sklearn"] = None  # type: ignore[assignment]
        try:
            return importlib.import_module("xgboost")
        finally:
            del sys.modules["sklearn"]
    return importlib.import_module("xgboost")
