"""What searches share that plan a batch of candidates on a model, measure it, and plan anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

import numpy as np
from tilefarm.measurement import Trial
from tilefarm.space import Point, SearchSpace

from tuner.candidate_pool import CandidatePool
from tuner.cost_model import Featurizer, Floats
from tuner.noise import told_apart
from tuner.sampler import Sampler
from tuner.search import Rows
from tuner.xgb_model import XgbModel

_WARM_UP: Final = 16
_BATCH: Final = 32
"""Candidates of a plan, after which, or after as many ends, the model is fitted again."""
_RANDOM_SHARE: Final = 0.05


class PlannedSearch(ABC):
    """Random points first; then plans, and one proposal in twenty is random."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.sampler = Sampler(space)
        self.candidates = CandidatePool(self.sampler, self.rng)
        self._features = Featurizer(space)
        self._model = XgbModel(seed=seed)
        self._rows: list[Rows] = []
        self._costs: list[float] = []
        self._noises: list[float] = []
        self._fitted = 0
        self._planned = np.empty((0, len(self.sampler.names)), dtype=np.int64)

    @abstractmethod
    def plan(self) -> Rows:
        """Points that the model likes, the best first."""

    def ask(self, n: int) -> list[Point]:
        points: list[Point] = []
        while len(points) < n and len(self._costs) >= _WARM_UP:
            if self.rng.random() < _RANDOM_SHARE or not len(best := self._next()):
                break
            points += self.candidates.take(best)
        return points + self.candidates.take(self.candidates.sample(n - len(points)))

    def tell(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            point = dict(trial.point)
            self.candidates.mark(point)
            full = self.sampler.complete(point)
            if full is not None and (cost := trial.cost) is not None:
                self._rows.append(self.sampler.row(full))
                self._costs.append(cost)
                self._noises.append(trial.noise)

    def _next(self) -> Rows:
        self._planned = self.candidates.unseen(self._planned)
        if not len(self._planned) or len(self._costs) >= self._fitted + _BATCH:
            rows = np.asarray(self._rows)
            levels = told_apart(np.asarray(self._costs), float(np.median(self._noises)))
            self._model.fit(self._features(rows), np.log2(levels), np.ones(len(rows)))
            self._fitted = len(self._costs)
            self._planned = self.candidates.unseen(self.plan())[:_BATCH]
        return self._planned[:1]

    def predicted(self, rows: Rows) -> Floats:
        """The log2 of what each is expected to cost."""
        return self._model.predict(self._features(rows)) if len(rows) else np.empty(0)

    def best(self, n: int) -> Rows:
        """The n best measured ones."""
        return np.asarray(self._rows)[np.argsort(self._costs, kind="stable")[:n]]
