"""Ranked candidates: their order, and that keys and features are those of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from kit.kernels.nests import EXAMPLES
from tilefarm.space import ESTIMATE, SearchSpace
from tilefarm.target import TARGETS

from compile_worker.space import generate
from tuner.cost_model import Featurizer, Floats
from tuner.ranked_rows import RankedRows
from tuner.sampler import Sampler
from tuner.search import Rows


@pytest.fixture
def space() -> SearchSpace:
    return generate(EXAMPLES["conv2d"], TARGETS["sim"]).space


@pytest.fixture
def sampler(space: SearchSpace) -> Sampler:
    return Sampler(space)


@pytest.fixture
def ranked(sampler: Sampler) -> RankedRows:
    rows = sampler.draw(1500, np.random.default_rng(0))[0]
    return RankedRows(rows, sampler, Featurizer(sampler.space))


def test_the_least_estimate_is_first_and_every_row_has_one_position(ranked: RankedRows) -> None:
    assert (np.diff(ranked.estimates) >= 0).all()
    rows = [tuple(ranked.row(at)) for at in range(len(ranked))]
    assert sorted(rows) == sorted(map(tuple, ranked.of))


def test_keys_features_and_estimates_are_those_of_the_row(
    ranked: RankedRows, sampler: Sampler
) -> None:
    features = Featurizer(sampler.space)
    for at in (len(ranked) - 1, 700, 0):  # the last one first: it computes all before it
        row = ranked.row(at)[None]
        assert ranked.key(at) == sampler.keys(row)[0]
        assert (ranked.features(np.asarray([at])) == features(row)).all()
        assert ranked.estimates[at] == features.estimates(row)[0]


def test_of_equal_estimates_the_default_is_first(sampler: Sampler) -> None:
    default = sampler.default()
    assert default is not None
    others = sampler.draw(40, np.random.default_rng(1))[0]
    rows = np.unique(np.concatenate([others, sampler.row(default)[None]]), axis=0)
    estimate = sampler.names.index(ESTIMATE)
    rows[:, estimate] = 7
    first = RankedRows(rows, sampler, Featurizer(sampler.space)).key(0)
    assert first == sampler.key(default)


def test_seen_ones_are_left_out_from_the_front(ranked: RankedRows) -> None:
    seen = {ranked.key(at) for at in (0, 2)}
    assert ranked.unseen(seen, 3).tolist() == [1, 3, 4]
    assert len(ranked.unseen(seen, 10_000)) == len(ranked) - 2


def test_all_rows_with_a_key_that_is_seen_are_left_out(sampler: Sampler) -> None:
    rows = sampler.draw(20, np.random.default_rng(0))[0]
    twins = rows.copy()
    twins[:, sampler.names.index(ESTIMATE)] += 1
    ranked = RankedRows(np.concatenate([rows, twins]), sampler, Featurizer(sampler.space))
    seen = set(sampler.keys(rows[:3]))
    left = ranked.unseen(seen, 100)
    assert len(left) == 34
    assert not seen.intersection(ranked.key(int(at)) for at in left)


def test_features_that_all_have_in_common_are_left_out_beside_known_ones(
    ranked: RankedRows, sampler: Sampler
) -> None:
    positions = ranked.unseen(set(), 900)
    every = ranked.features(positions)
    differ = (every != every[0]).any(axis=0)
    rows, known = ranked.features_beside(positions, every[5:7])
    assert (rows == every[:, differ]).all()
    assert (known == every[5:7, differ]).all()
    other = every[:1] + ~differ  # as a row of another space, whose constants are others
    rows, known = ranked.features_beside(positions, other)
    assert (rows == every).all()
    assert (known == other).all()


def test_nothing_has_no_positions(sampler: Sampler) -> None:
    none = sampler.draw(1, np.random.default_rng(0))[0][:0]
    empty = RankedRows(none, sampler, Featurizer(sampler.space))
    assert len(empty) == len(empty.unseen(set(), 5)) == 0
    assert empty.features(empty.unseen(set(), 5)).shape == (0, len(sampler.names))


def test_features_are_computed_of_the_front_alone(sampler: Sampler) -> None:
    computed = list[int]()

    class Counting(Featurizer):
        def __call__(self, rows: Rows) -> Floats:
            computed.append(len(rows))
            return super().__call__(rows)

    rows = sampler.draw(1500, np.random.default_rng(0))[0]
    ranked = RankedRows(rows, sampler, Counting(sampler.space))
    ranked.features(ranked.unseen(set(), 10))
    ranked.features(ranked.unseen({ranked.key(0)}, 10))
    assert 10 < sum(computed) < len(rows) / 2
