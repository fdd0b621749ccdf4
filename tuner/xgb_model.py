"""The cost model on gradient-boosted trees; the only file that imports xgboost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tuner.cost_model import Floats

_ROUNDS: Final = 80


@dataclass(slots=True)
class XgbModel:
    """Boosted regression on log cycles, or pairwise ranking by them.

    One thread: proposing shares the machine with compilers and simulated devices. xgboost is
    imported by the first fit, because importing it takes longer than a first batch of kernels.
    """

    objective: str = "reg:squarederror"
    seed: int = 0
    _booster: Any = field(default=None, init=False)

    def fit(self, features: Floats, cycles: Floats) -> None:
        import xgboost

        log_cycles = np.log(cycles)
        spread = float(log_cycles.std()) or 1.0
        labels = (log_cycles - log_cycles.mean()) / spread
        ranking = self.objective.startswith("rank:")
        data = xgboost.DMatrix(features, label=-labels if ranking else labels, nthread=1)
        if ranking:
            data.set_group([len(labels)])
        parameters = {
            "objective": self.objective,
            "seed": self.seed % (1 << 31),
            "nthread": 1,
            "tree_method": "hist",
            "max_depth": 4,
            "eta": 0.15,
            "min_child_weight": 1,
            "subsample": 0.9,
            "colsample_bytree": 0.6,
            "lambda": 0.5,
            "verbosity": 0,
        }
        self._booster = xgboost.train(parameters, data, _ROUNDS)

    def predict(self, features: Floats) -> Floats:
        import xgboost

        raw = self._booster.predict(xgboost.DMatrix(features, nthread=1))
        scores: Floats = np.asarray(raw, dtype=np.float64)
        return -scores if self.objective.startswith("rank:") else scores
