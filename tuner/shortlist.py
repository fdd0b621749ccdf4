"""The points of a space that its own estimate likes best: found by bounding the estimate.

sampled, then crossed    the least estimate found so far
                  │      is a bound for the space
space, limited: estimate <= least * (1 + share)
                  │      most of the tree is refuted near its root
all that is left, or an even sample of it where it is too much
"""

from __future__ import annotations

from typing import Final

import numpy as np
from tilefarm.space import ESTIMATE

from tuner.sampler import Sampler
from tuner.search import Rows, distinct

_POPULATION: Final = 96
_GENERATIONS: Final = 6
_GROWTH: Final = 2.0
_FAST_GROWTH: Final = 4.0
"""Of the share, when a larger one is wanted: each time the space is searched. The fast one where
the last search has found few."""
_FEW: Final = 64
MOST: Final = 4096
"""Points of a shortlist."""


class Shortlist:
    """The cheapest points of one space by its estimate, as many as are wanted.

    Args:
        sampler: of a space that has an estimate, made for limits on it.
        population: some of its points, from which the search for the least estimate begins.
    """

    def __init__(self, sampler: Sampler, population: Rows, rng: np.random.Generator) -> None:
        self._sampler = sampler
        self._rng = rng
        self._column = sampler.names.index(ESTIMATE)
        self._rows = self._ordered(population)
        self._share = -1.0
        self._found = 0
        """By the last search."""

    def within(self, share: float) -> Rows:
        """Points that are estimated at most so much above the least, in order; MOST at most.

        There may be others behind them. The same array as before while that has what is wanted,
        and once it is full: of a larger share it could not keep more.
        """
        if share > self._share and len(self._rows) and self._found < MOST:
            if self._share < 0:
                self._evolve()
            growth = _FAST_GROWTH if self._found < _FEW else _GROWTH
            self._share = max(share, growth * self._share)
            more = self._bounded(self._share)
            self._found = len(more)
            self._rows = self._ordered(np.concatenate([self._rows, more]), MOST)
        return self._rows

    def _evolve(self) -> None:
        """Generations of constrained crossover that select by the estimate."""
        for _ in range(_GENERATIONS):
            parents = self._rows[: _POPULATION // 2]
            pairs = self._rng.integers(len(parents), size=(2, _POPULATION))
            children = self._sampler.crossed(parents[pairs[0]], parents[pairs[1]], self._rng)
            self._rows = self._ordered(np.concatenate([self._rows, children]))

    def _bounded(self, share: float) -> Rows:
        bound = int(self._rows[0, self._column] * (1 + share))
        with self._sampler.limited(ESTIMATE, bound):
            return self._sampler.draw(MOST, self._rng)[0]

    def _ordered(self, rows: Rows, most: int | None = None) -> Rows:
        """Each once, by estimate; where it is the same, by the values. The first ones alone."""
        at = distinct(rows[:, : self._sampler.search.plan.telling])
        return rows[at[np.argsort(rows[at, self._column], kind="stable")[:most]]]
