"""Dealing unseen points, from a space that is listed and from one that is too large for that."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from kit.toy_spaces import conv_like_space, pair_space

import tuner.deck
from tuner.deck import Deck
from tuner.sampler import Sampler
from tuner.search import Rows


@pytest.mark.parametrize("listed", [0, 10_000])
def test_every_point_is_dealt_once(monkeypatch: pytest.MonkeyPatch, listed: int) -> None:
    monkeypatch.setattr(tuner.deck, "_LISTED", listed)
    space = conv_like_space(4, 6, 2, 1, 1)
    everything = Sampler(space).enumerate(5000)
    assert everything is not None
    deck = Deck(Sampler(space), np.random.default_rng(0))
    deck.mark(everything[3])
    dealt = []
    while len(rows := deck.draw(17)):
        dealt += deck.deal(rows)
    keys = {deck.sampler.key(p) for p in dealt}
    assert len(keys) == len(dealt) == len(everything) - 1
    assert deck.sampler.key(everything[3]) not in keys
    assert deck.has_seen(dealt[0])


def test_drawing_alone_does_not_use_points_up() -> None:
    deck = Deck(Sampler(pair_space()), np.random.default_rng(0))
    assert len(deck.draw(3)) == 3
    unseen = deck.all_unseen()
    assert unseen is not None
    assert len(unseen) == 5


def test_a_large_space_is_not_listed() -> None:
    deck = Deck(Sampler(conv_like_space(60, 72, 32, 32, 5)), np.random.default_rng(0))
    assert deck.all_unseen() is None
    assert len(deck.draw(40)) == 40


def test_a_point_more_of_a_large_space_does_not_look_through_the_whole_stock() -> None:
    class Counted(Sampler):
        looked_at = 0

        def keys(self, rows: Rows) -> list[tuple[int, ...]]:
            self.looked_at += len(rows)
            return super().keys(rows)

    sampler = Counted(conv_like_space(60, 72, 32, 32, 5))
    deck = Deck(sampler, np.random.default_rng(0))
    deck.deal(deck.draw(1))
    before = sampler.looked_at
    for _ in range(20):
        deck.deal(deck.draw(1))
    assert sampler.looked_at - before == 20


def test_points_that_others_measured_are_passed_over_wherever_they_are_in_the_stock() -> None:
    deck = Deck(Sampler(conv_like_space(60, 72, 32, 32, 5)), np.random.default_rng(0))
    rows = deck.draw(6)
    others = deck.sampler.points(rows[[0, 2, 3]])
    for point in others:
        deck.mark(point)
    assert (deck.draw(3) == rows[[1, 4, 5]]).all()


def test_a_session_without_a_model_does_not_import_the_tree_library() -> None:
    script = "import sys, tuner.session, tuner.guided; sys.exit('xgboost' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 0
