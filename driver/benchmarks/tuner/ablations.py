"""Searches that lack one part of `guided`, to tell what each is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from tilefarm.measurement import Trial
from tilefarm.space import Point, SearchSpace

from driver.benchmarks.tuner.conversations import Make
from tuner.guided import GuidedByEstimate
from tuner.model_search import ModelSearch


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


class _EstimateOnly(GuidedByEstimate):
    """The order of the estimate, to the end."""

    def tell(self, trials: Sequence[Trial]) -> None:
        """Nothing is learnt."""


ABLATIONS: Final[Mapping[str, Make]] = {
    "without constraints": _Unconstrained,
    "without estimate": ModelSearch,
    "without residual": _EstimateOnly,
}
"""By name. Transfer is told by networks, for there is nobody to learn from in one space."""
