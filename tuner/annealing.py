"""Simulated annealing on a model: AutoTVM's search (Chen et al., NeurIPS 2018)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tuner.planned_search import PlannedSearch
from tuner.search import Rows

_CHAINS: Final = 64
_STEPS: Final = 40


class Annealing(PlannedSearch):
    """Chains of points that change one choice at a time, uphill ever less as they cool down."""

    def plan(self) -> Rows:
        chains = np.concatenate([self.best(_CHAINS // 4), self.candidates.sample(_CHAINS)])[
            :_CHAINS
        ]
        costs = self.predicted(chains)
        met, told = [chains.copy()], [costs.copy()]
        warmth = float(costs.std())
        for step in range(_STEPS):
            moved, which = self.sampler.mutated(chains, self.rng)
            theirs = self.predicted(moved)
            met.append(moved)
            told.append(theirs)
            uphill = theirs - costs[which]
            heat = max(warmth * (1 - step / _STEPS), 1e-9)
            taken = self.rng.random(len(which)) < np.exp(np.minimum(-uphill / heat, 0.0))
            chains[which[taken]], costs[which[taken]] = moved[taken], theirs[taken]
        rows = np.concatenate(met)
        return rows[np.argsort(np.concatenate(told), kind="stable")]
