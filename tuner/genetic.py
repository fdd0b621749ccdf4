"""A genetic search as AutoTVM has it: crossover that knows no constraints, and no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from tilefarm.measurement import Trial
from tilefarm.space import Point, SearchSpace

from tuner.candidate_pool import CandidatePool
from tuner.measured_rows import MeasuredRows
from tuner.sampler import Sampler
from tuner.search import Rows

_POPULATION: Final = 24
_MUTATED_SHARE: Final = 0.1
_TRIES: Final = 64


class Genetic:
    """Children of measured points, drawn by their cost; those that are not valid are thrown away.

    Each choice is one of the two parents', and one in ten is any. What constraints leave of such
    children is the measure of constrained crossover (`evolution.py`).
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._sampler = Sampler(space)
        self._candidates = CandidatePool(self._sampler, self._rng)
        self._measured = MeasuredRows(self._sampler, self._candidates, 2 * _POPULATION)

    def ask(self, n: int) -> list[Point]:
        points: list[Point] = []
        if len(self._measured) >= _POPULATION:
            points += self._candidates.take(self._candidates.unseen(self._children(n))[:n])
        return points + self._candidates.take(self._candidates.sample(n - len(points)))

    def tell(self, trials: Sequence[Trial]) -> None:
        self._measured.tell(trials)

    def _children(self, n: int) -> Rows:
        costs, rows = self._measured.costs, self._measured.rows
        fitness = costs.min() / costs
        pairs = self._rng.choice(len(rows), size=(2, _TRIES * n), p=fitness / fitness.sum())
        return self._sampler.drawn(rows[pairs[0]], rows[pairs[1]], self._rng, _MUTATED_SHARE)
