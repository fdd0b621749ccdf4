"""Search of a space without an estimate: a model learns from scratch, evolution proposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.measurement import Trial
from tilefarm.space import Point, SearchSpace

from tuner.candidate_pool import CandidatePool
from tuner.cost_model import CostModel, Featurizer, Floats
from tuner.noise import told_apart
from tuner.sampler import Sampler
from tuner.search import Rows
from tuner.xgb_model import XgbModel

_WARM_UP: Final = 8
"""Trials before a model is fitted."""
_POOL: Final = 384
_POPULATION: Final = 96
_ELITE: Final = 32
_FRESH: Final = 96
_GENERATIONS: Final = 3
"""Of children between two fits; each is judged by the model alone."""
_BEST_SHARE: Final = 0.85
_ROULETTE_SHARE: Final = 0.08
"""Shares of proposals: the model's best, and chance among its better ones; the rest explores."""


class ModelSearch:
    """The default point, then a spread of points, then what a model of the measured ones likes.

    Of the proposals after the warm-up 85 % are the best by prediction, 8 % drawn by rank and the
    rest random. A small space is ranked in full; in a large one a population evolves on predicted
    cost, as in Heron (ASPLOS 2023). The model is fitted again as trials come in, less often as they
    become many.
    """

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None = None) -> None:
        self._rng = np.random.default_rng(seed)
        self._sampler = Sampler(space)
        self._candidates = CandidatePool(self._sampler, self._rng)
        self._features = Featurizer(space)
        self._model = model if model is not None else XgbModel(seed=seed)
        self._rows: list[Rows] = []
        self._measured: list[float] = []
        """What each of these rows costs, by one clock."""
        self._noises: list[float] = []
        self._known: list[Rows] = []
        """What was asked or told before there was a model: the spread keeps away from these."""
        self._fitted = 0
        nothing = np.empty((0, len(self._sampler.names)), dtype=np.int64)
        self._pool: Rows = nothing
        self._ranked: Rows = nothing
        self._is_first = True

    def ask(self, n: int) -> list[Point]:
        points = self._default() if self._is_first and n else []
        self._is_first = False
        if self._is_warming_up:
            points += self._spread(n - len(points))
        else:
            self._refresh()
            points += self._ranked_picks(n - len(points))
        return points + self._candidates.take(self._candidates.sample(n - len(points)))

    def tell(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            given = dict(trial.point)
            self._candidates.mark(given)
            point = self._sampler.complete(given)
            if point is None:
                continue
            row = self._sampler.row(point)
            if len(self._measured) < _WARM_UP:
                self._known.append(row)
            if (cost := trial.cost) is not None:
                self._learn(row, cost, trial.noise)

    def _learn(self, row: Rows, cost: float, noise: float) -> None:
        self._rows.append(row)
        self._measured.append(cost)
        self._noises.append(noise)

    @property
    def _is_warming_up(self) -> bool:
        return len(self._measured) < _WARM_UP

    # -- before there is a model -------------------------------------------------------------------

    def _default(self) -> list[Point]:
        point = self._sampler.default()
        if point is None or self._candidates.has_seen(point):
            return []
        self._candidates.mark(point)
        self._known.append(self._sampler.row(point))
        return [point]

    def _spread(self, n: int) -> list[Point]:
        """Points far from one another and from all known ones, by their features."""
        self._pool = self._candidates.unseen(self._pool)
        if len(self._pool) < n:
            self._pool = self._candidates.sample(_POOL)
        if n <= 0 or not len(self._pool):
            return []
        known = self._features(np.asarray(self._known)) if self._known else None
        rows = self._pool[farthest(self._features(self._pool), known, n)]
        self._known += [*rows]
        return self._candidates.take(rows)

    # -- with a model ------------------------------------------------------------------------------

    def _refresh(self) -> None:
        """Fits and ranks again when enough was learned since the last time, or nothing is left."""
        news = len(self._measured) - self._fitted
        if self._fitted and news < max(4, self._fitted // 8) and len(self._ranked):
            return
        if news:
            self._fit()
        rows = self._candidates.all_unseen()
        if rows is None:
            self._ranked = self._evolved()
        else:
            self._ranked = rows[np.argsort(self._costs(rows), kind="stable")]

    def _fit(self) -> None:
        """Learns log costs."""
        rows, costs = np.asarray(self._rows), np.log2(self._levels())
        self._model.fit(self._features(rows), costs, np.ones(len(rows)))
        self._fitted = len(self._measured)

    def _levels(self) -> Floats:
        """What was measured, without differences that the usual noise explains."""
        return told_apart(np.asarray(self._measured), float(np.median(self._noises)))

    def _ranked_picks(self, n: int) -> list[Point]:
        points: list[Point] = []
        for kind in self._rng.random(max(n, 0)):
            self._ranked = self._candidates.unseen(self._ranked[:_POOL])
            if kind > _BEST_SHARE + _ROULETTE_SHARE or not len(self._ranked):
                continue
            at = 0 if kind <= _BEST_SHARE else int(len(self._ranked) * self._rng.random() ** 3)
            points += self._candidates.take(self._ranked[at : at + 1])
        return points

    def _evolved(self) -> Rows:
        """Candidates of a large space: more generations, selected by prediction.

        The population of the last time takes part again, next to the best measured points and fresh
        random ones.
        """
        elite = np.argsort(self._levels(), kind="stable")[:_ELITE]
        fresh = self._candidates.peek(_POOL, leaving=_FRESH)
        population = np.concatenate(
            [np.asarray(self._rows)[elite], self._ranked[:_POPULATION], fresh]
        )
        costs = self._costs(population)
        for _ in range(_GENERATIONS):
            parents = population[np.argsort(costs, kind="stable")[: _POPULATION // 2]]
            mothers, fathers = self._by_rank(len(parents)), self._by_rank(len(parents))
            children = self._children(parents[mothers], parents[fathers])
            population = np.concatenate([population, children])
            costs = np.concatenate([costs, self._costs(children)])
        return self._candidates.unseen(population[np.argsort(costs, kind="stable")])

    def _children(self, mothers: Rows, fathers: Rows) -> Rows:
        return self._sampler.crossed(mothers, fathers, self._rng)

    def _by_rank(self, count: int) -> NDArray[np.int64]:
        """A population of random positions; the first ones are likelier."""
        weights = 1.0 / (1.0 + np.arange(count))
        return self._rng.choice(count, size=_POPULATION, p=weights / weights.sum())

    def _costs(self, rows: Rows) -> Floats:
        """What the model says of each; lower is better."""
        return self._model.predict(self._features(rows)) if len(rows) else np.empty(0)


def farthest(pool: Floats, known: Floats | None, n: int) -> NDArray[np.intp]:
    """Positions of at most n rows of `pool`, each the farthest from `known` and earlier choices.

    Distances are Euclidean on columns scaled to the same spread. Ties go to the first row.
    """
    everything = pool if known is None else np.concatenate([pool, known])
    spread = everything.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    pool = pool / scale
    if known is None:
        gap = np.full(len(pool), np.inf)
    else:
        gap = np.min(((pool[:, None, :] - (known / scale)[None, :, :]) ** 2).sum(axis=2), axis=1)
    chosen: list[int] = []
    for _ in range(min(n, len(pool))):
        at = int(np.argmax(gap))
        chosen.append(at)
        gap = np.minimum(gap, ((pool - pool[at]) ** 2).sum(axis=1))
        gap[at] = -1.0
    return np.asarray(chosen, dtype=np.intp)
