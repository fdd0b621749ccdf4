"""Searches that teach one another, and what a space's own estimates are good for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from kit.search.toy_spaces import conv_like_cycles, conv_like_space, trial_of
from tilefarm.space import ESTIMATE, Point, SearchSpace, Sum, Variable

from tuner.cost_model import Featurizer, Floats
from tuner.guided import Guided
from tuner.sampler import Sampler
from tuner.transfer_learning import SharedMeasurements


class Remembering:
    """A cost model that notes what it was fitted to and likes small first features."""

    def __init__(self) -> None:
        self.fits: list[tuple[int, Floats]] = []

    def fit(self, features: Floats, costs: Floats, weights: Floats) -> None:
        self.fits.append((len(features), weights))

    def predict(self, features: Floats) -> Floats:
        return np.asarray(features[:, 0])


def with_estimate(space: SearchSpace) -> SearchSpace:
    """The space with its loads, weighted, as the estimate."""
    loads = Sum(name="def_load", total=ESTIMATE, terms=((2, "inp_loads"), (32, "wgt_loads")))
    return replace(
        space,
        variables=(*space.variables, Variable(name=ESTIMATE, tunable=False)),
        constraints=(*space.constraints, loads),
    )


def tell_all(search: Guided, points: list[Point]) -> None:
    search.tell([trial_of(p, cycles=conv_like_cycles(p)) for p in points])


def test_others_of_the_same_kind_are_counted_and_given() -> None:
    shared = SharedMeasurements()
    for cost in range(5):
        shared.add("conv", "first", np.asarray([float(cost)]), cost)
    shared.add("conv", "second", np.asarray([9.0]), 9)
    shared.add("dense", "third", np.asarray([7.0]), 7)
    assert shared.count_of_others("conv", "second") == 5
    assert shared.count_of_others("dense", "third") == 0
    features, costs = shared.of_others("conv", "second", most=2)
    assert features.tolist() == [[3.0], [4.0]]
    assert costs.tolist() == [3.0, 4.0]
    assert len(shared.of_others("dense", "third", most=2)[1]) == 0


def test_a_search_uses_its_model_at_once_when_others_measured_enough() -> None:
    shared = SharedMeasurements()
    first = Guided(with_estimate(conv_like_space(28, 28, 2, 2, 3)), seed=0, model=Remembering())
    first.join(shared)
    tell_all(first, first.ask(9))
    model = Remembering()
    second = Guided(with_estimate(conv_like_space(14, 14, 4, 4, 3)), seed=0, model=model)
    second.join(shared)
    tell_all(second, second.ask(1))
    second.ask(1)
    ((count, weights),) = model.fits
    assert count == 10
    assert weights[0] > weights[1] > 0


def test_searches_without_estimates_do_not_mix() -> None:
    shared = SharedMeasurements()
    first = Guided(conv_like_space(28, 28, 2, 2, 3), seed=0, model=Remembering())
    first.join(shared)
    tell_all(first, first.ask(9))
    model = Remembering()
    second = Guided(conv_like_space(14, 14, 4, 4, 3), seed=0, model=model)
    second.join(shared)
    tell_all(second, second.ask(2))
    second.ask(1)
    assert model.fits == []


def test_the_first_points_are_those_that_the_estimate_promises() -> None:
    space = with_estimate(conv_like_space())
    sampler = Sampler(space)
    rows, _ = sampler.draw(2000, np.random.default_rng(0))
    column = sampler.names.index(ESTIMATE)
    asked = [p[ESTIMATE] for p in Guided(space, seed=4, model=Remembering()).ask(9)[1:]]
    assert max(asked) < np.quantile(rows[:, column], 0.25)


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
    estimate = Featurizer(space).estimate(np.asarray([[1, 3, 15], [2, 7, 0]]))
    assert estimate is not None
    assert estimate.tolist() == [4.0, 0.0]
    assert Featurizer(conv_like_space()).estimate(np.zeros((1, 40), dtype=np.int64)) is None
