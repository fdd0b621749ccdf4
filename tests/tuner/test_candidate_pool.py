"""Taking unseen points, from a space that is listed and from one that is too large for that."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from kit.search.toy_spaces import conv_like_space, pair_space

import tuner.candidate_pool
from tuner.candidate_pool import CandidatePool
from tuner.sampler import Sampler
from tuner.search import Rows


@pytest.mark.parametrize("listed", [0, 10_000])
def test_every_point_is_taken_once(monkeypatch: pytest.MonkeyPatch, listed: int) -> None:
    monkeypatch.setattr(tuner.candidate_pool, "LISTED", listed)
    space = conv_like_space(4, 6, 2, 1, 1)
    everything = Sampler(space).enumerate(5000)
    assert everything is not None
    pool = CandidatePool(Sampler(space), np.random.default_rng(0))
    pool.mark(everything[3])
    taken = []
    while len(rows := pool.sample(17)):
        taken += pool.take(rows)
    keys = {pool.sampler.key(p) for p in taken}
    assert len(keys) == len(taken) == len(everything) - 1
    assert pool.sampler.key(everything[3]) not in keys
    assert pool.has_seen(taken[0])


def test_sampling_alone_does_not_use_points_up() -> None:
    pool = CandidatePool(Sampler(pair_space()), np.random.default_rng(0))
    assert len(pool.sample(3)) == 3
    unseen = pool.all_unseen()
    assert unseen is not None
    assert len(unseen) == 5


def test_a_large_space_is_not_listed() -> None:
    pool = CandidatePool(Sampler(conv_like_space(60, 72, 32, 32, 5)), np.random.default_rng(0))
    assert pool.all_unseen() is None
    assert len(pool.sample(40)) == 40


def test_a_point_more_of_a_large_space_does_not_look_through_the_whole_stock() -> None:
    class Counted(Sampler):
        looked_at = 0

        def keys(self, rows: Rows) -> list[tuple[int, ...]]:
            self.looked_at += len(rows)
            return super().keys(rows)

    sampler = Counted(conv_like_space(60, 72, 32, 32, 5))
    pool = CandidatePool(sampler, np.random.default_rng(0))
    pool.take(pool.sample(1))
    before = sampler.looked_at
    for _ in range(20):
        pool.take(pool.sample(1))
    assert sampler.looked_at - before == 20


def test_points_that_others_measured_are_passed_over_wherever_they_are_in_the_stock() -> None:
    pool = CandidatePool(Sampler(conv_like_space(60, 72, 32, 32, 5)), np.random.default_rng(0))
    rows = pool.sample(6)
    others = pool.sampler.points(rows[[0, 2, 3]])
    for point in others:
        pool.mark(point)
    assert (pool.sample(3) == rows[[1, 4, 5]]).all()


def test_a_session_without_a_model_does_not_import_the_tree_library() -> None:
    script = "import sys, tuner.session, tuner.guided; sys.exit('xgboost' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 0
