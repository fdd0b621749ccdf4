"""Guided search: a cost model ranks what constrained evolution proposes; a share explores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.measurement import Status, Trial
from tilefarm.space import Point, SearchSpace

from tuner.cost_model import CostModel, Featurizer, Floats
from tuner.deck import Deck
from tuner.sampler import Sampler
from tuner.search import Rows
from tuner.xgb_model import XgbModel

_WARM_UP: Final = 10
_SPREAD_POOL: Final = 256
_POPULATION: Final = 200
_ELITE: Final = 32
_GENERATIONS: Final = 3
_BEST_SHARE: Final = 0.75
_ROULETTE_SHARE: Final = 0.15


class Guided:
    """The default point, then a spread of points, then what a model of the measured ones likes.

    Of the proposals after the warm-up 75 % are the best by prediction, 15 % drawn by rank and the
    rest random. A small space is ranked in full; a large one by the constrained genetic algorithm
    of Heron (ASPLOS 2023, section 5) on predicted cost. The model is fitted again as trials come
    in, less often as they become many.
    """

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None = None) -> None:
        self._rng = np.random.default_rng(seed)
        self._sampler = Sampler(space)
        self._deck = Deck(self._sampler, self._rng)
        self._features = Featurizer(space)
        self._model = model if model is not None else XgbModel(seed=seed)
        self._rows: list[Rows] = []
        self._cycles: list[int] = []
        self._told: list[Rows] = []
        self._fitted = 0
        self._ranked: Rows = np.empty((0, len(self._sampler.names)), dtype=np.int64)
        self._is_first = True

    def ask(self, n: int) -> list[Point]:
        points = self._default() if self._is_first and n else []
        self._is_first = False
        if len(self._cycles) < _WARM_UP:
            return points + self._spread(n - len(points))
        self._refresh()
        points += self._ranked_picks(n - len(points))
        return points + self._deck.deal(self._deck.draw(n - len(points)))

    def tell(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            point = self._sampler.complete(dict(trial.point))
            self._deck.mark(dict(trial.point))
            if point is not None:
                row = self._sampler.row(point)
                self._told.append(row)
                if trial.status is Status.OK and trial.cycles is not None:
                    self._rows.append(row)
                    self._cycles.append(max(1, trial.cycles))

    # -- before there is a model -------------------------------------------------------------------

    def _default(self) -> list[Point]:
        point = self._sampler.default()
        if point is None or self._deck.has_seen(point):
            return []
        self._deck.mark(point)
        self._told.append(self._sampler.row(point))
        return [point]

    def _spread(self, n: int) -> list[Point]:
        """Points far from one another and from all known ones, in the space of features."""
        pool = self._deck.draw(_SPREAD_POOL)
        if not len(pool) or n <= 0:
            return []
        known = self._features(np.asarray(self._told)) if self._told else None
        chosen = farthest(self._features(pool), known, n)
        self._told += [*pool[chosen]]
        return self._deck.deal(pool[chosen])

    # -- with a model ------------------------------------------------------------------------------

    def _refresh(self) -> None:
        """Fits and ranks again when enough was learned since the last time, or nothing is left."""
        news = len(self._cycles) - self._fitted
        if self._fitted and news < 4 + self._fitted // 12 and len(self._ranked):
            return
        if news:
            self._model.fit(
                self._features(np.asarray(self._rows)), np.asarray(self._cycles, dtype=np.float64)
            )
            self._fitted = len(self._cycles)
        unseen = self._deck.all_unseen()
        self._ranked = self._ordered(unseen if unseen is not None else self._evolved())

    def _ranked_picks(self, n: int) -> list[Point]:
        points: list[Point] = []
        kinds = self._rng.random(max(n, 0))
        for kind in kinds:
            self._ranked = self._deck.unseen(self._ranked)
            if kind > _BEST_SHARE + _ROULETTE_SHARE or not len(self._ranked):
                continue
            at = 0 if kind <= _BEST_SHARE else self._by_rank(len(self._ranked))
            points += self._deck.deal(self._ranked[at : at + 1])
        return points

    def _by_rank(self, count: int) -> int:
        """A random position; those near the front are likelier."""
        return int(count * self._rng.random() ** 3)

    def _evolved(self) -> Rows:
        """Candidates of a large space: generations of crossover, selected by prediction."""
        best = np.argsort(np.asarray(self._cycles), kind="stable")[:_ELITE]
        elite = np.asarray(self._rows)[best]
        pool = np.concatenate([elite, self._deck.draw(_POPULATION)])
        found = [pool]
        for _ in range(_GENERATIONS):
            parents = self._ordered(pool)[: _POPULATION // 2]
            pairs = self._roulette(len(parents), 2 * _POPULATION)
            children = self._sampler.crossed(
                parents[pairs[:_POPULATION]], parents[pairs[_POPULATION:]], self._rng
            )
            found.append(children)
            pool = np.concatenate([parents, children])
        return self._deck.unseen(np.concatenate(found))

    def _roulette(self, count: int, n: int) -> NDArray[np.int64]:
        weights = 1.0 / (1.0 + np.arange(count))
        return self._rng.choice(count, size=n, p=weights / weights.sum())

    def _ordered(self, rows: Rows) -> Rows:
        if not len(rows):
            return rows
        return rows[np.argsort(self._model.predict(self._features(rows)), kind="stable")]


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
