"""Best and default trials."""

from __future__ import annotations

from kit.search.toy_spaces import timed, trial_of
from tilefarm.measurement import Status, Trial

from driver.campaign.scores import Scores


def counted(cycles: int) -> Trial:
    return trial_of({"x": cycles}, cycles=cycles)


def test_the_best_is_the_least_of_earlier_and_present_ones() -> None:
    scores = Scores({"a": counted(70), "c": None}, {"a": counted(100)})
    scores.add("a", counted(80), is_default=False)
    scores.add("b", counted(50), is_default=True)
    assert (scores.best("a"), scores.best("b"), scores.best("c")) == (
        counted(70),
        counted(50),
        None,
    )
    assert (scores.default("a"), scores.default("b")) == (counted(100), counted(50))


def test_seconds_are_as_good_as_cycles_and_nothing_is_no_time() -> None:
    slow, fast = (trial_of({"x": 1}, wall_time=timed(seconds)) for seconds in (2e-5, 1e-5))
    scores = Scores({}, {})
    for trial in (slow, fast, counted(0), trial_of({"x": 2}, Status.RUN_CRASH)):
        scores.add("a", trial, is_default=True)
    assert (scores.best("a"), scores.default("a")) == (fast, fast)
    assert Scores({"a": counted(0)}, {"a": counted(0)}).best("a") is None
