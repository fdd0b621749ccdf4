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


def test_a_session_without_a_model_does_not_import_the_tree_library() -> None:
    script = "import sys, tuner.session, tuner.guided; sys.exit('xgboost' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 0
