"""One sequence of proposals: whatever ends when, and however often the tuner is killed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.search.toy_spaces import (
    conv_like_cycles,
    conv_like_space,
    empty_space,
    pair_space,
    trial_of,
    with_estimate,
)
from tilefarm.measurement import Status, Trial

from tuner import PROPOSERS
from tuner.lookahead import Lookahead
from tuner.session import OtherOrderError, Proposal, TuningSession, WeightedSpace

TRIALS = 50


def tasks() -> dict[str, WeightedSpace]:
    """Some that are large, one that soon has no more, one without points, one that only fails."""
    return {
        "small": WeightedSpace(conv_like_space(14, 14, 2, 2, 3), weight=1),
        "hopeless": WeightedSpace(conv_like_space(28, 28, 4, 4, 1), weight=4),
        "few": WeightedSpace(pair_space()),
        "none": WeightedSpace(empty_space()),
        "estimated": WeightedSpace(with_estimate(conv_like_space(14, 28, 2, 2, 3))),
        "alike": WeightedSpace(with_estimate(conv_like_space(14, 28, 2, 2, 3))),
        "large": WeightedSpace(conv_like_space(28, 28, 2, 2, 3), weight=3, lower_bound_cycles=1),
    }


def end_of(proposal: Proposal) -> Trial:
    """How a candidate ends does not depend on anything but itself."""
    point, total = proposal.point, sum(proposal.point.values())
    if proposal.task == "hopeless":
        return replace(trial_of(point, Status.COMPILE_ERROR), why=f"too big by {total}")
    if total % 7 == 0:
        return trial_of(point, Status.RUN_CRASH)
    return trial_of(point, cycles=total if proposal.task == "few" else conv_like_cycles(point))


@dataclass
class Farm:
    """Measures what it is given at its own pace, and kills the tuner so many times meanwhile."""

    chance: random.Random
    lookahead: Lookahead
    proposer: str
    trials: int = TRIALS
    least_gain: float = 0.0
    tasks: Mapping[str, WeightedSpace] = field(default_factory=tasks)
    kills: int = 0
    asked: dict[int, tuple[str, tuple[tuple[str, int], ...]]] = field(default_factory=dict)
    kept: dict[int, tuple[str, Trial]] = field(default_factory=dict)

    def session(self, seed: int) -> TuningSession:
        return TuningSession(
            self.tasks,
            trials=self.trials,
            proposer=self.proposer,
            seed=seed,
            lookahead=self.lookahead,
            least_gain=self.least_gain,
            ended=self.kept,
        )

    def play(self, seed: int) -> Mapping[int, tuple[str, tuple[tuple[str, int], ...]]]:
        session, out = self.session(seed), list[Proposal]()
        kills = sorted(self.chance.choices(range(self.trials), k=self.kills))
        while True:
            if kills and len(self.kept) >= kills[0]:
                del kills[0]
                session, out = self.session(seed), []
            asked = session.ask(self.chance.randrange(1, 9))
            out += asked
            for each in asked:
                what = each.task, tuple(sorted(each.point.items()))
                assert self.asked.setdefault(each.number, what) == what
            if not out:
                return self.asked
            for _ in range(self.chance.randrange(1 + len(out))):
                ended = out.pop(self.chance.randrange(len(out)))
                end = end_of(ended)
                session.tell(ended.number, end)
                self.kept[ended.number] = ended.task, end


CHANCES, AHEAD = st.integers(0, 2**32), st.integers(1, 24)


@pytest.mark.parametrize("proposer", PROPOSERS)
@settings(max_examples=1, deadline=None)
@given(chance=CHANCES, most=AHEAD)
def test_the_same_seed_asks_for_the_same(proposer: str, chance: int, most: int) -> None:
    assert_undisturbed(proposer, chance, most)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(chance=CHANCES, most=AHEAD)
@pytest.mark.parametrize("proposer", PROPOSERS)
def test_the_same_seed_asks_for_the_same_at_any_pace(proposer: str, chance: int, most: int) -> None:
    assert_undisturbed(proposer, chance, most)


def assert_undisturbed(proposer: str, chance: int, most: int) -> None:
    """Neither the farm's pace nor kills of the tuner show in what is asked for."""
    expected = Farm(random.Random(0), Lookahead(most), proposer).play(3)
    disturbed = Farm(random.Random(chance), Lookahead(most), proposer, kills=4)
    assert disturbed.play(3) == expected
    assert sorted(expected) == [*range(1, TRIALS + 1)]
    assert disturbed.kept.keys() == expected.keys()


def test_what_may_be_known_decides_and_not_what_is() -> None:
    """Two that differ in nothing but how much ended early ask for different things if they may."""

    def asked(most: int) -> Mapping[int, object]:
        return Farm(random.Random(1), Lookahead(most), "guided").play(3)

    assert asked(4) != asked(16)


def test_a_larger_budget_goes_on_where_the_smaller_one_ended() -> None:
    farm = Farm(random.Random(5), Lookahead(8), "guided", trials=60, kills=3)
    farm.play(3)
    farm.trials = 63
    longer = farm.play(3)
    assert len(longer) > 60
    assert longer == Farm(random.Random(6), Lookahead(8), "guided", trials=63).play(3)
    farm.trials = 59
    session = farm.session(3)
    assert session.told == len(longer)
    assert session.ask(9) == []


def test_a_search_that_ends_by_itself_ends_alike_at_any_pace() -> None:
    """Of several tasks one is worth a trial again when ends of the others are known: but of all."""
    shapes = (14, 28, 2, 2, 3), (28, 28, 2, 2, 3), (14, 14, 2, 4, 3), (14, 14, 2, 2, 1)
    estimated = {
        str(at): WeightedSpace(with_estimate(conv_like_space(*shape)), weight=at)
        for at, shape in enumerate(shapes, start=1)
    }

    def played(chance: int, kills: int) -> Mapping[int, object]:
        farm = Farm(random.Random(chance), Lookahead(12), "guided", kills=kills, trials=400)
        farm.tasks, farm.least_gain = estimated, 0.1
        return farm.play(3)

    undisturbed = played(0, 0)
    assert 4 < len(undisturbed) < 400
    for chance in range(1, 4):
        assert played(chance, 2 * chance) == undisturbed


@pytest.fixture(scope="module")
def ended() -> Mapping[int, tuple[str, Trial]]:
    """How all candidates of a search ended."""
    farm = Farm(random.Random(5), Lookahead(8), "guided")
    farm.play(3)
    return farm.kept


@pytest.mark.parametrize("other", ["seed", "lookahead", "place", "gap"])
def test_what_was_asked_for_under_other_settings_is_refused(
    other: str, ended: Mapping[int, tuple[str, Trial]]
) -> None:
    farm = Farm(random.Random(5), Lookahead(8), "guided", kept=dict(ended))
    if other == "lookahead":
        farm.lookahead = Lookahead(20)
    if other == "place":
        farm.kept[30], farm.kept[31] = farm.kept[31], farm.kept[30]
    if other == "gap":
        del farm.kept[20]
    with pytest.raises(OtherOrderError):
        farm.session(4 if other == "seed" else 3)
