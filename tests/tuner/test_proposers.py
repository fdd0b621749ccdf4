"""Every proposer runs the same suite; what is special to one is below."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kit.recipes import RECIPES
from kit.search.toy_spaces import (
    conv_like_cycles,
    conv_like_space,
    pair_space,
    timed,
    trial_of,
    with_estimate,
)
from tilefarm.errors import SettingsError
from tilefarm.measurement import Status, Trial
from tilefarm.space import Point, SearchSpace

from tuner import PROPOSERS, make_proposer
from tuner.cost_model import Floats
from tuner.grid_search import spread
from tuner.guided import Guided
from tuner.model_search import ModelSearch, farthest
from tuner.proposer import Proposer
from tuner.sampler import Sampler

from .proposer_suite import Make, ProposerSuite


class TestRandom(ProposerSuite):
    @pytest.fixture
    def make(self) -> Make:
        return lambda space, seed: make_proposer("random", space, seed)


class TestGrid(ProposerSuite):
    @pytest.fixture
    def make(self) -> Make:
        return lambda space, seed: make_proposer("grid", space, seed)


def test_a_short_walk_is_spread_over_a_space_that_is_too_large_to_list() -> None:
    space = conv_like_space(60, 72, 32, 32, 5)
    points = make_proposer("grid", space, 0).ask(64)
    for variable in space.tunables:
        taken = {point[variable.name] for point in points}
        assert 4 * len(taken) >= 3 * len(variable.domain), variable.name


class TestEvolution(ProposerSuite):
    @pytest.fixture
    def make(self) -> Make:
        return lambda space, seed: make_proposer("evolution", space, seed)


class TestGenetic(ProposerSuite):
    @pytest.fixture
    def make(self) -> Make:
        return lambda space, seed: make_proposer("genetic", space, seed)


class TestAnnealing(ProposerSuite):
    @pytest.fixture
    def make(self) -> Make:
        return lambda space, seed: make_proposer("annealing", space, seed)


class TestMutation(ProposerSuite):
    @pytest.fixture
    def make(self) -> Make:
        return lambda space, seed: make_proposer("mutation", space, seed)


class TestGuided(ProposerSuite):
    @pytest.fixture
    def make(self) -> Make:
        return lambda space, seed: make_proposer("guided", space, seed)


class TestReadme(ProposerSuite):
    """The proposer that the README shows how to write."""

    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        made: Make = RECIPES["tuner: proposer"].run(tmp_path)["NearTheBest"]
        return made


class Knowall:
    """A cost model that looks at one feature only: what a perfect fit would do."""

    def __init__(self, score: Callable[[Floats], Floats]) -> None:
        self._score = score
        self.rows_seen: list[int] = []
        self.costs_seen: list[float] = []
        self.rows_judged: list[int] = []

    def fit(self, features: Floats, costs: Floats, weights: Floats) -> None:
        assert len(features) == len(costs) == len(weights)
        self.rows_seen.append(len(costs))
        self.costs_seen += costs.tolist()

    def predict(self, features: Floats) -> Floats:
        self.rows_judged.append(len(features))
        return self._score(features)


class TestLearnedWithoutTrees(ProposerSuite):
    @pytest.fixture
    def make(self) -> Make:
        def learned(space: SearchSpace, seed: int) -> Proposer:
            return ModelSearch(space, seed, model=Knowall(lambda f: f.sum(axis=1)))

        return learned


class TestGuidedByAnEstimate(ProposerSuite):
    @pytest.fixture
    def make(self) -> Make:
        return lambda space, seed: Guided(with_estimate(space), seed)


def trials_until(proposer: Proposer, target: int, budget: int) -> int:
    """Trials until a conv_like candidate of at most `target` cycles was measured."""
    spent = 0
    while spent < budget:
        points = proposer.ask(4)
        for point in points:
            spent += 1
            if conv_like_cycles(point) <= target:
                return spent
        proposer.tell([trial_of(p, cycles=conv_like_cycles(p)) for p in points])
    return spent


def test_guided_needs_fewer_trials_than_random_to_come_within_five_percent() -> None:
    space = conv_like_space(28, 28, 8, 8, 1)
    points = Sampler(space).enumerate(100_000)
    assert points is not None
    target = round(1.05 * min(map(conv_like_cycles, points)))
    spent = {
        name: sorted(trials_until(make_proposer(name, space, s), target, 400) for s in range(5))
        for name in ("random", "guided")
    }
    assert spent["guided"][2] <= 40
    assert 3 * spent["guided"][2] <= spent["random"][2]


@pytest.mark.parametrize("name", ["evolution", "genetic", "annealing", "mutation"])
def test_a_search_that_learns_finds_better_points_than_chance(name: str) -> None:
    space, ends = conv_like_space(28, 28, 8, 8, 1), dict[str, list[int]]()
    for each in ("random", name):
        found = []
        for seed in range(3):
            proposer, best = make_proposer(each, space, seed), 1 << 62
            for _ in range(12):
                points = proposer.ask(8)
                costs = [conv_like_cycles(p) for p in points]
                best = min(best, *costs)
                proposer.tell([trial_of(p, cycles=c) for p, c in zip(points, costs, strict=True)])
            found.append(best)
        ends[each] = sorted(found)
    assert ends[name][1] < ends["random"][1]


@pytest.mark.parametrize("name", ["guided", "evolution"])
def test_seconds_lead_a_search_as_cycles_do(name: str) -> None:
    """With a power of two between them, down to the last bit."""

    def asked(of: Callable[[Point], Trial]) -> list[Point]:
        proposer, points = make_proposer(name, conv_like_space(28, 28, 2, 2, 3), 5), []
        for _ in range(6):
            points += (more := proposer.ask(5))
            proposer.tell([of(point) for point in more])
        return points

    counted = asked(lambda p: trial_of(p, cycles=conv_like_cycles(p)))
    clocked = asked(lambda p: trial_of(p, wall_time=timed(conv_like_cycles(p) / 2**20)))
    assert counted == clocked


def test_the_model_does_not_learn_noise() -> None:
    model = Knowall(lambda features: features[:, 0])
    proposer = ModelSearch(conv_like_space(), seed=1, model=model)
    points = proposer.ask(12)
    times = [timed(1e-5 * (1 + 0.0005 * at), noise=0.02) for at in range(11)] + [timed(2e-5, 0.02)]
    proposer.tell([trial_of(p, wall_time=t) for p, t in zip(points, times, strict=True)])
    proposer.ask(1)
    assert len(set(model.costs_seen)) == 2


def test_without_an_estimate_the_default_point_comes_first() -> None:
    space = conv_like_space()
    first = ModelSearch(space, seed=9).ask(1)[0]
    assert {name: first[name] for name, _ in space.default} == dict(space.default)


def test_a_search_follows_its_model() -> None:
    space = conv_like_space(14, 14, 4, 4, 3)
    wanted = "steps"
    column = [v.name for v in space.variables].index(wanted)
    model = Knowall(lambda features: features[:, column])
    proposer = ModelSearch(space, seed=1, model=model)
    for _ in range(3):
        proposer.tell([trial_of(p, cycles=conv_like_cycles(p)) for p in proposer.ask(5)])
    all_points = Sampler(space).enumerate(100_000)
    assert all_points is not None
    fewest = sorted(p[wanted] for p in all_points)
    asked = sorted(p[wanted] for p in proposer.ask(20))
    assert asked[9] <= fewest[24]


def test_every_generation_is_judged_once() -> None:
    model = Knowall(lambda features: features[:, 0])
    proposer = ModelSearch(conv_like_space(), seed=1, model=model)
    proposer.tell([trial_of(p, cycles=conv_like_cycles(p)) for p in proposer.ask(12)])
    proposer.ask(1)
    first, *children = model.rows_judged
    assert children
    assert max(children) < first // 2


def test_failures_are_not_learned_from() -> None:
    model = Knowall(lambda features: features[:, 0])
    proposer = ModelSearch(conv_like_space(), seed=1, model=model)
    points = proposer.ask(30)
    proposer.tell([trial_of(p, cycles=conv_like_cycles(p)) for p in points[:12]])
    proposer.tell([trial_of(p, Status.COMPILE_TIMEOUT) for p in points[12:]])
    proposer.ask(1)
    assert model.rows_seen == [12]


def test_the_farthest_points_are_chosen_greedily() -> None:
    pool = np.asarray([[0.0], [1.0], [9.0], [10.0]])
    assert farthest(pool, np.asarray([[0.0]]), 2).tolist() == [3, 1]
    assert farthest(pool, None, 2).tolist() == [0, 3]
    assert sorted(farthest(pool, None, 9).tolist()) == [0, 1, 2, 3]


def test_a_grid_is_spread_over_the_space_from_the_start() -> None:
    rows = np.arange(6).reshape(-1, 1)
    assert spread(rows)[:, 0].tolist() == [0, 4, 2, 1, 5, 3]


def test_an_unknown_proposer_is_the_users_mistake() -> None:
    with pytest.raises(SettingsError, match="unknown proposer 'best'") as caught:
        make_proposer("best", pair_space(), 0)
    assert "guided" in caught.value.hint
    assert "guided" in PROPOSERS
