"""Guided search: the best points by the space's estimate first, then what is learnt of its errors.

estimate of all points ──► the cheapest few thousand ──► + error that is expected ──► the least
                              (`shortlist.py`)              (`residual_model.py`)      that is hoped
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.measurement import Trial
from tilefarm.space import ESTIMATE, Point, SearchSpace

from tuner.candidate_pool import CandidatePool
from tuner.cost_model import Featurizer, Floats
from tuner.model_search import ModelSearch
from tuner.noise import told_apart
from tuner.proposer import Proposer
from tuner.ranked_rows import RankedRows
from tuner.residual_model import ResidualModel, informs
from tuner.sampler import Key, Sampler
from tuner.search import Rows
from tuner.shortlist import Shortlist
from tuner.transfer_learning import SharedMeasurements

_POOL: Final = 384
_RANKED: Final = 768
"""Candidates that are told apart by the model; the time of a plan grows with them."""
_PLANNED: Final = 8
_NEWS_SHARE: Final = 4
"""A plan is made anew when a quarter of what is known is news: at first after every trial. So it
has as many proposals, and a few at least."""
_EAGER: Final = 1.0
_HOPE: Final = 2.0
"""Doubts that are taken off an expected cost: what is unsure is worth a try; and off the least that
there may be, before one says that there is nothing."""
_NARROW: Final = 0.01
_SPREADS: Final = 3.0
"""Candidates are those whose estimate is so much above the least, or as much as three times what
the estimate has been off."""
_BEST: Final = 64
_LATEST: Final = 64
"""Of the search's own trials these many are learnt from, and of others' the latest."""
_OTHERS: Final = 64
_USUAL_CYCLES: Final = 400.0
_USUAL_SHARE: Final = 0.02
"""What an estimate is off, before anything is measured: what begins and ends a kernel, and the rest
of it. The less there is to do, the more counts the first."""
_USUAL_UNKNOWN: Final = 0.3
"""What costs differ by where there is no estimate, as log2: measured ones tell soon."""
_OTHERS_NOISE: Final = 0.3
"""A trial of another workload says less of this one."""


def make_guided(space: SearchSpace, seed: int) -> Proposer:
    """Led by the space's estimate; where it has none, by a model that learns from scratch."""
    if Featurizer(space).has_estimate:
        return EstimateGuided(space, seed)
    is_small = CandidatePool(Sampler(space), np.random.default_rng(seed)).all_rows() is not None
    return Guided(space, seed) if is_small else ModelSearch(space, seed)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A row with its features, and log2 of its estimate."""

    row: Rows
    features: Floats
    estimate: float


@dataclass(frozen=True, slots=True)
class _Planned:
    """What will be asked for, and log2 of the least that any may cost that is left then."""

    candidate: _Candidate
    key: Key
    least: float


class Guided:
    """Asks for the candidate with the least hoped-for cost: estimate, expected error, and doubt.

    Candidates that are out are supposed to come out as expected, so that their like wait. What
    other searches measured on spaces with the same variables counts as well.

    Args:
        space: one with an estimate, or small enough to be listed. Without an estimate all points
            are supposed to cost the same, and the default is asked for first.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._features = Featurizer(space)
        limits_on = (ESTIMATE,) if self._features.has_estimate else ()
        self._sampler = Sampler(space, limits_on=limits_on)
        self._candidates = CandidatePool(self._sampler, self._rng)
        self._width = len(self._features.kind)
        self._shared = SharedMeasurements()
        self._features_of: list[Floats] = []
        self._estimates: list[float] = []
        self._costs: list[float] = []
        self._noises: list[float] = []
        self._out: dict[Key, _Candidate] = {}
        self._plan: deque[_Planned] = deque()
        self._planned_with = -1
        self._is_exhausted = False
        self._shortlist: Shortlist | None = None
        self._ranked: RankedRows | None = None

    def join(self, shared: SharedMeasurements) -> None:
        """Learn from other searches as well, and let them learn from this one."""
        self._shared = shared

    def ask(self, n: int) -> list[Point]:
        points: list[Point] = []
        while len(points) < n and self._look():
            planned = self._plan.popleft()
            points += self._candidates.take(planned.candidate.row[None])
            self._out[planned.key] = planned.candidate
        return points

    def tell(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            given = dict(trial.point)
            self._candidates.mark(given)
            candidate = self._out.pop(self._sampler.key(given), None)
            if (cost := trial.cost) is None:
                continue
            if candidate is None and (row := self._sampler.row_of(given)) is not None:
                estimate = float(self._features.estimates(row[None])[0])
                candidate = _Candidate(row, self._features(row[None])[0], estimate)
            if candidate is not None:
                self._learn(candidate, cost, trial.noise)

    def _learn(self, candidate: _Candidate, cost: float, noise: float) -> None:
        self._features_of.append(candidate.features)
        self._estimates.append(candidate.estimate)
        self._costs.append(cost)
        self._noises.append(noise)
        missed = float(np.log2(cost) - candidate.estimate)
        self._shared.add(self._features.kind, self, candidate.features, missed)

    def _look(self) -> bool:
        """Whether there is a next candidate; it stands first in the plan then."""
        news = len(self._costs) - self._planned_with
        if self._planned_with < 0 or news > len(self._costs) // _NEWS_SHARE:
            self._plan.clear()
        while self._plan and self._plan[0].key in self._candidates.seen:
            self._plan.popleft()
        if not self._plan and not self._is_exhausted:
            self._make_plan()
        return bool(self._plan)

    # -- what may be tried -------------------------------------------------------------------------

    def _likely(self) -> tuple[RankedRows, NDArray[np.intp]]:
        """The cheapest unseen candidates by the estimate, as positions; any, when these are out."""
        rows = self._candidates.all_rows()
        if rows is None:
            if self._shortlist is None:
                population = self._candidates.sample(_POOL)
                self._shortlist = Shortlist(self._sampler, population, self._rng)
            rows = self._shortlist.within(self._share)
        if self._ranked is None or self._ranked.of is not rows:
            self._ranked = RankedRows(rows, self._sampler, self._features)
        most = _RANKED if self._features.has_estimate else len(rows)
        unseen = self._ranked.unseen(self._candidates.seen, most)
        if len(unseen) > _RANKED:
            others = self._rng.permutation(unseen[1:])[: _RANKED - 1]
            unseen = np.concatenate([unseen[:1], others])
        if len(unseen):
            return self._ranked, unseen
        rest = RankedRows(self._candidates.sample(_POOL), self._sampler, self._features)
        return rest, np.arange(len(rest))

    @property
    def _share(self) -> float:
        """How far above the least estimate a candidate may be."""
        if len(self._costs) < 2:
            return _NARROW
        missed = np.log2(self._costs) - np.asarray(self._estimates)
        return max(_NARROW, float(2 ** (_SPREADS * missed.std()) - 1))

    # -- what is hoped of it -----------------------------------------------------------------------

    def _make_plan(self) -> None:
        self._plan.clear()
        self._planned_with = len(self._costs)
        ranked, likely = self._likely()
        self._is_exhausted = not len(likely)
        if self._is_exhausted:
            return
        model, estimates = self._model(ranked, likely), ranked.estimates[likely]
        expected = estimates + model.prediction.means
        count = min(max(_PLANNED, len(self._costs) // _NEWS_SHARE), len(likely))
        while True:
            doubts = model.prediction.doubts
            least = float((expected - _HOPE * doubts).min())
            at = int(np.argmin(expected - _EAGER * doubts))
            position = int(likely[at])
            features = ranked.features(likely[at : at + 1])[0]
            candidate = _Candidate(ranked.row(position), features, float(estimates[at]))
            self._plan.append(_Planned(candidate, ranked.key(position), least))
            if len(self._plan) == count:
                return
            expected[at] = np.inf
            model.suppose(at)

    def _model(self, ranked: RankedRows, likely: NDArray[np.intp]) -> ResidualModel:
        """What is known of these candidates' errors, from others and those out as well."""
        costs = told_apart(np.asarray(self._costs), float(np.median(self._noises or [0.0])))
        order = np.argsort(costs, kind="stable")
        used = np.union1d(order[:_BEST], np.arange(len(costs))[-_LATEST:]).astype(np.intp)
        features = np.asarray([self._features_of[at] for at in used]).reshape(-1, self._width)
        missed = np.log2(costs[used]) - np.asarray(self._estimates)[used]
        noises = np.zeros(len(used))
        more, theirs = self._shared.of_others(self._features.kind, self, _OTHERS)
        if informs(features, missed, more, theirs, _OTHERS_NOISE):
            features = np.concatenate([features, more])
            missed = np.concatenate([missed, theirs])
            noises = np.concatenate([noises, np.full(len(more), _OTHERS_NOISE)])
        out = np.asarray([each.features for each in self._out.values()])
        usual = _USUAL_UNKNOWN
        if self._features.has_estimate:
            cycles = 2.0 ** float(ranked.estimates[likely].min()) / 4
            usual = _USUAL_SHARE + _USUAL_CYCLES / cycles
        known = np.concatenate([features, out.reshape(-1, self._width)])
        candidates, known = ranked.features_beside(likely, known)
        measured, out_features = known[: len(missed)], known[len(missed) :]
        return ResidualModel(candidates, measured, missed, noises, out=out_features, usual=usual)


class EstimateGuided(Guided):
    """It also says what may still be found, as the estimate promises it."""

    def hope(self) -> float | None:
        """The least that an unseen candidate may cost; None while nothing was measured."""
        return float(2 ** self._plan[0].least) if self._costs and self._look() else None
