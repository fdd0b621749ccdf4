"""Searches that lack one part of `guided`, or have another in its place: what each is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.measurement import Trial
from tilefarm.space import Point, SearchSpace

from driver.benchmarks.tuner import constraint_solver
from driver.benchmarks.tuner.conversations import Make
from tuner.guided import EstimateGuided
from tuner.model_search import ModelSearch
from tuner.ranked_rows import RankedRows
from tuner.search import Rows, distinct
from tuner.xgb_model import XgbModel

_SAMPLES: Final = 64
"""Of CP-SAT for one search: at some ten milliseconds each it is most of its time."""
_KEY_SHARE: Final = 0.2
"""Of the tunables, as in Heron (ASPLOS 2023)."""


class _Unconstrained:
    """Random values of the tunables, whatever the constraints say: most of them fail."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self._space = space
        self._rng = np.random.default_rng(seed)
        self._constants = {v.name: v.domain[0] for v in space.variables if len(v.domain) == 1}

    def ask(self, n: int) -> list[Point]:
        return [
            self._constants
            | {v.name: int(self._rng.choice(v.domain)) for v in self._space.tunables}
            for _ in range(n)
        ]

    def tell(self, trials: Sequence[Trial]) -> None:
        """Nothing is learnt."""


class _EstimateOnly(EstimateGuided):
    """The order of the estimate, to the end."""

    def tell(self, trials: Sequence[Trial]) -> None:
        """Nothing is learnt."""


class _CpSatSampled(EstimateGuided):
    """Its candidates are samples of CP-SAT with random hints, instead of the cheapest of all."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        super().__init__(space, seed)
        self._space = space
        self._sampled: RankedRows | None = None

    def _likely(self) -> tuple[RankedRows, NDArray[np.intp]]:
        if self._sampled is None:
            self._sampled = RankedRows(self._samples(), self._sampler, self._features)
        unseen = self._sampled.unseen(self._candidates.seen, _SAMPLES)
        return (self._sampled, unseen) if len(unseen) else super()._likely()

    def _samples(self) -> Rows:
        rows = [self._sampler.row(self._sampler.default() or {})]
        for _ in range(_SAMPLES):
            hints = {v.name: int(self._rng.choice(v.domain)) for v in self._space.tunables}
            chosen = constraint_solver.solution(
                self._space, int(self._rng.integers(1 << 30)), hints
            )
            if chosen is not None and (point := self._sampler.complete(chosen)) is not None:
                rows.append(self._sampler.row(point))
        found = np.asarray(rows)
        return found[distinct(found)]


class _ImportantKeys(ModelSearch):
    """Without an estimate, and children keep what the model finds important; all else is free."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self._trees = XgbModel(seed=seed)
        super().__init__(space, seed, model=self._trees)

    def _children(self, mothers: Rows, fathers: Rows) -> Rows:
        sampler = self._sampler
        importance = self._trees.importance(len(sampler.names))
        columns = [sampler.names.index(name) for name in sampler.tunables]
        most = max(1, round(_KEY_SHARE * len(columns)))
        keys = np.argsort(-importance[columns], kind="stable")[:most]
        return sampler.crossed(mothers, fathers, self._rng, held=frozenset(keys.tolist()))


ABLATIONS: Final[Mapping[str, Make]] = {
    "without constraints": _Unconstrained,
    "without estimate": ModelSearch,
    "without estimate, importance-guided keys": _ImportantKeys,
    "without residual": _EstimateOnly,
    **({"CP-SAT sampling": _CpSatSampled} if constraint_solver.is_there() else {}),
}
"""By name. Transfer is told by networks, for there is nobody to learn from in one space."""
