"""What every proposer must do: subclass, give the fixture `make`, and these tests run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from kit.search.toy_spaces import (
    conv_like_cycles,
    conv_like_space,
    empty_space,
    pair_space,
    trial_of,
)
from tilefarm.measurement import Status, Trial
from tilefarm.space import Point, SearchSpace, violations

from tuner.proposer import Proposer
from tuner.sampler import Sampler

Make = Callable[[SearchSpace, int], Proposer]


def answers(points: Sequence[Point]) -> list[Trial]:
    """Trials of conv_like points: every fifth candidate fails."""
    return [
        trial_of(point, Status.RUN_CRASH)
        if sum(point.values()) % 5 == 0
        else trial_of(point, cycles=conv_like_cycles(point))
        for point in points
    ]


def keys(points: Sequence[Point]) -> list[tuple[tuple[str, int], ...]]:
    return [tuple(sorted(p.items())) for p in points]


class ProposerSuite:
    """A conversation is ask -> tell -> ask …; see `tuner.proposer.Proposer` for the rules."""

    @pytest.fixture
    def make(self) -> Make:
        raise NotImplementedError

    def test_points_are_valid_and_new_over_a_whole_conversation(self, make: Make) -> None:
        space = conv_like_space(14, 14, 2, 2, 3)
        proposer, asked = make(space, 3), list[Point]()
        for n in (1, 3, 8, 8, 8, 5):
            points = proposer.ask(n)
            assert len(points) == n
            assert all(not violations(space, p) for p in points)
            asked += points
            proposer.tell(answers(points))
        assert len(set(keys(asked))) == len(asked)

    def test_asking_goes_on_while_nothing_is_told(self, make: Make) -> None:
        proposer = make(conv_like_space(), 0)
        asked = [p for _ in range(6) for p in proposer.ask(7)]
        assert len(set(keys(asked))) == 42

    def test_same_seed_same_answers(self, make: Make) -> None:
        def conversation() -> list[Point]:
            proposer, asked = make(conv_like_space(28, 28, 2, 2, 3), 11), list[Point]()
            for _ in range(4):
                points = proposer.ask(6)
                proposer.tell(answers(points))
                asked += points
            return asked

        assert keys(conversation()) == keys(conversation())

    def test_a_space_is_exhausted_exactly_once(self, make: Make) -> None:
        space = pair_space(extent=12, limit=6)
        proposer, asked = make(space, 5), list[Point]()
        while points := proposer.ask(2):
            asked += points
            proposer.tell([trial_of(p, cycles=100 + p["inner"]) for p in points])
        assert sorted(p["inner"] for p in asked) == [1, 2, 3, 4, 6]
        assert proposer.ask(3) == []

    def test_told_points_are_not_proposed(self, make: Make) -> None:
        space = pair_space(extent=12, limit=6)
        proposer = make(space, 5)
        full = Sampler(space).complete
        told = [full({"inner": 2}), full({"inner": 3})]
        proposer.tell([trial_of(p, Status.COMPILE_ERROR) for p in told if p is not None])
        assert sorted(p["inner"] for p in proposer.ask(9)) == [1, 4, 6]

    def test_nothing_but_failures_is_no_trouble(self, make: Make) -> None:
        proposer = make(conv_like_space(14, 14, 2, 2, 3), 2)
        for _ in range(8):
            points = proposer.ask(4)
            assert len(points) == 4
            proposer.tell([trial_of(p, Status.WRONG_RESULT) for p in points])

    def test_equal_cycles_are_no_trouble(self, make: Make) -> None:
        proposer = make(conv_like_space(14, 14, 2, 2, 3), 2)
        for _ in range(6):
            proposer.tell([trial_of(p, cycles=1) for p in proposer.ask(5)])
        assert len(proposer.ask(5)) == 5

    def test_an_empty_space_and_a_question_for_nothing(self, make: Make) -> None:
        assert make(empty_space(), 0).ask(4) == []
        assert make(pair_space(), 0).ask(0) == []
