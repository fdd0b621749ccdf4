"""Failures that are alike: which count, and which end a row of them."""

from __future__ import annotations

from dataclasses import replace

from kit.search.toy_spaces import trial_of
from tilefarm.measurement import Status, Trial

from tuner.failure_streak import FailureStreak, cause


def failed(why: str, status: Status = Status.COMPILE_ERROR) -> Trial:
    return replace(trial_of({"inner": 1}, status), why=why)


def test_other_causes_good_ends_and_the_farms_faults_keep_a_task() -> None:
    streak = FailureStreak()
    for trial, count in (
        (failed("too big"), 1),
        (failed("gone", Status.INFRA_ERROR), 1),
        (failed("too big"), 2),
        (failed("too small"), 1),
        (failed("too big"), 1),
        (trial_of({"inner": 1}, cycles=7), 0),
        (failed("too big"), 0),
    ):
        streak = streak.after(trial)
        assert streak.count == count


def test_causes_that_differ_in_numbers_only_are_one() -> None:
    assert cause(failed("x takes 17 of 0xff\nmore")) == cause(failed("x takes 1,024 of 0x10\nno"))
    assert cause(failed("`tilefarm replay 3f` repeats it")) == cause(
        failed("`tilefarm replay 77` repeats it")
    )
    assert cause(failed("inp_sram: full")) != cause(failed("acc_sram: full"))
    assert cause(failed("full")) != cause(failed("full", Status.COMPILE_CRASH))
