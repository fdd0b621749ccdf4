"""Searches that teach one another, and what a space's own estimate is good for."""

from __future__ import annotations

import numpy as np
import pytest
from kit.search.toy_spaces import conv_like_space, trial_of, with_estimate
from tilefarm.space import ESTIMATE, Point, SearchSpace, Variable

from tuner.cost_model import Featurizer
from tuner.guided import Guided
from tuner.residual_model import ResidualModel, informs
from tuner.sampler import Sampler
from tuner.shortlist import MOST, Shortlist
from tuner.transfer_learning import SharedMeasurements


def test_others_of_the_same_kind_are_given() -> None:
    shared = SharedMeasurements()
    for cost in range(5):
        shared.add("conv", "first", np.asarray([float(cost)]), cost + 100)
    shared.add("conv", "second", np.asarray([9.0]), 9)
    shared.add("dense", "third", np.asarray([7.0]), 7)
    features, costs = shared.of_others("conv", "second", most=2)
    assert features.tolist() == [[3.0], [4.0]]
    assert costs.tolist() == [1.0, 2.0], "against the mean of their own search"
    assert not len(shared.of_others("conv", "first", most=2)[0]), "one alone has none"
    assert len(shared.of_others("dense", "third", most=2)[1]) == 0


def estimate_of(point: Point) -> int:
    return point[ESTIMATE]


def slower_with_one_store_slot(point: Point) -> int:
    """Costs that the estimate knows but for one thing."""
    return estimate_of(point) * (3 if point["acc_slots"] == 2 else 4)


def tell_all(search: Guided, points: list[Point]) -> None:
    search.tell([trial_of(p, cycles=slower_with_one_store_slot(p)) for p in points])


def test_the_first_point_is_the_best_by_the_estimate() -> None:
    space = with_estimate(conv_like_space())
    points = Sampler(space).enumerate(1_000_000)
    assert points is not None
    assert len(points) > MOST
    assert estimate_of(Guided(space, seed=4).ask(1)[0]) == min(map(estimate_of, points))


@pytest.mark.parametrize("seed", range(4))
def test_a_search_learns_what_the_estimate_misses(seed: int) -> None:
    search = Guided(with_estimate(conv_like_space()), seed)
    for _ in range(16):
        tell_all(search, search.ask(1))
    assert {p["acc_slots"] for p in search.ask(3)} == {2}


def test_what_one_search_learnt_another_knows_once_its_own_errors_agree() -> None:
    shared, taught = SharedMeasurements(), with_estimate(conv_like_space(28, 28, 4, 2, 3))
    first = Guided(with_estimate(conv_like_space()), seed=0)
    first.join(shared)
    for _ in range(24):
        tell_all(first, first.ask(1))
    asked: dict[bool, list[list[int]]] = {}
    for learns in (False, True):
        asked[learns] = []
        for seed in range(4):
            search = Guided(taught, seed)
            search.join(shared if learns else SharedMeasurements())
            asked[learns].append([])
            for _ in range(4):
                points = search.ask(1)
                asked[learns][-1] += [point["acc_slots"] for point in points]
                tell_all(search, points)
    assert all(slots[0] == 1 for slots in asked[True]), "the estimate's best comes first"
    assert all(slots[3] == 2 for slots in asked[True])
    assert sum(map(sum, asked[False])) <= sum(map(sum, asked[True]))


def test_errors_of_others_that_are_not_like_ones_own_are_left_aside() -> None:
    own = np.linspace(0.0, 1.0, 8)[:, None]
    others = np.linspace(0.05, 0.95, 12)[:, None]
    missed = 0.3 * own[:, 0] + 0.1
    for slope, is_told in ((0.3, True), (-0.3, False)):
        assert informs(own, missed, others, slope * (others[:, 0] - 0.5), 0.3) is is_told
    assert not informs(own[:2], missed[:2], others, 0.3 * (others[:, 0] - 0.5), 0.3), "too few"


def test_a_shortlist_has_every_point_below_its_bound_and_no_other_sooner() -> None:
    space = with_estimate(conv_like_space(28, 28, 4, 4, 3))
    sampler = Sampler(space, limits_on=(ESTIMATE,))
    every = sampler.all_rows(1_000_000)
    assert every is not None
    estimates = np.sort(every[:, sampler.names.index(ESTIMATE)])
    shortlist = Shortlist(sampler, every[-40:], np.random.default_rng(0))
    for share in (0.01, 0.1):
        found = shortlist.within(share)[:, sampler.names.index(ESTIMATE)]
        wanted = estimates[estimates <= estimates[0] * (1 + share)]
        assert 0 < len(wanted) < MOST
        assert found[: len(wanted)].tolist() == wanted.tolist()


def test_a_full_shortlist_is_kept_whatever_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuner.shortlist.MOST", 16)
    sampler = Sampler(with_estimate(conv_like_space(28, 28, 4, 4, 3)), limits_on=(ESTIMATE,))
    some = sampler.draw(40, np.random.default_rng(1))[0]
    shortlist = Shortlist(sampler, some, np.random.default_rng(0))
    full = shortlist.within(0.5)
    assert len(full) == 16
    assert shortlist.within(2.0) is full


def test_the_model_learns_an_error_that_grows_with_a_feature() -> None:
    candidates = np.linspace(0.0, 1.0, 11)[:, None]
    measured = candidates[::2]
    model = ResidualModel(candidates, measured, 0.3 * measured[:, 0], np.zeros(len(measured)))
    assert np.allclose(model.prediction.means, 0.3 * candidates[:, 0], atol=0.05)


def test_what_is_like_something_measured_or_supposed_is_less_unsure() -> None:
    candidates = np.asarray([[0.0, 0.0], [0.1, 0.0], [4.0, 3.0], [4.0, 3.1]])
    model = ResidualModel(candidates, candidates[:1], np.asarray([0.1]), np.zeros(1))
    before = model.prediction.doubts
    assert before[0] < before[2]
    assert before[1] < before[2]
    model.suppose(2)
    after = model.prediction.doubts
    assert after[3] < before[3] / 2
    assert after[0] <= before[0]


def test_supposing_is_measuring_what_was_expected() -> None:
    """As many as make the model's table grow; all that is left of doubt is that of one model."""
    features = np.random.default_rng(0).normal(size=(90, 3))
    missed, measured, rest = 0.2 * features[:40, 0], features[:40], features[40:]
    model = ResidualModel(rest, measured, missed, np.zeros(40))
    for at in range(40):
        model.suppose(at)
    at_once = ResidualModel(rest, measured, missed, np.zeros(40), out=rest[:40])
    ratio = model.prediction.doubts[40:] / at_once.prediction.doubts[40:]
    assert np.allclose(ratio, 1.0, atol=0.1)
    assert np.allclose(model.prediction.means, at_once.prediction.means, atol=0.02)


def test_the_estimate_is_one_variable_and_not_the_cycles_of_parts() -> None:
    space = SearchSpace(
        name="two",
        version=1,
        variables=(
            Variable(name="x", domain=(1, 2)),
            Variable(name="a_cycles", tunable=False),
            Variable(name=ESTIMATE, tunable=False),
        ),
        constraints=(),
        default=(),
    )
    estimate = Featurizer(space).estimates(np.asarray([[1, 3, 15], [2, 7, 0]]))
    assert estimate is not None
    assert estimate.tolist() == [4.0, 0.0]
    assert not Featurizer(conv_like_space()).has_estimate
