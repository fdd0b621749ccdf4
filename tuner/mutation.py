"""Evolution by mutation on a model: MetaSchedule's search (Shao et al., NeurIPS 2022)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tuner.planned_search import PlannedSearch
from tuner.search import Rows

_POPULATION: Final = 256
_MEASURED_SHARE: Final = 0.2
_GENERATIONS: Final = 4
_MUTATED_SHARE: Final = 0.85


class Mutation(PlannedSearch):
    """Generations drawn by predicted cost, most of which change one choice; no crossover."""

    def plan(self) -> Rows:
        best = self.best(round(_MEASURED_SHARE * _POPULATION))
        rows = np.concatenate([best, self.candidates.sample(_POPULATION - len(best))])
        met = [rows]
        for _ in range(_GENERATIONS):
            costs = self.predicted(rows)
            fitness = np.exp2(costs.min() - costs)
            parents = rows[self.rng.choice(len(rows), _POPULATION, p=fitness / fitness.sum())]
            changed = self.rng.random(_POPULATION) < _MUTATED_SHARE
            children, _ = self.sampler.mutated(parents[changed], self.rng)
            rows = np.concatenate([children, parents[~changed]])
            met.append(children)
        every = np.concatenate(met)
        return every[np.argsort(self.predicted(every), kind="stable")]
