"""Failures that are alike: which count, and which end a row of them."""

from __future__ import annotations

from tilefarm.artifact import BuildFailure
from tilefarm.digest import Digest
from tilefarm.measurement import Counters, Measurement, RunFailure, Status

from driver.search.alike import Streak, cause, counted

NOTHING = Digest.of(b"")
GOOD = Measurement(artifact=NOTHING, device="sim0", counters=Counters(cycles=7))
REFUSED = BuildFailure(job=NOTHING, status=Status.COMPILE_ERROR, stage="lower", why="too big")


def test_other_causes_good_ends_and_the_farms_faults_keep_a_task() -> None:
    other = BuildFailure(job=NOTHING, status=Status.COMPILE_ERROR, stage="lower", why="too small")
    lost = RunFailure(artifact=NOTHING, status=Status.INFRA_ERROR, why="gone")
    streaks: dict[str, Streak] = {}
    for outcome, count in (
        (REFUSED, 1),
        (lost, 1),
        (REFUSED, 2),
        (other, 1),
        (REFUSED, 1),
        (GOOD, 0),
        (REFUSED, 0),
    ):
        streaks = counted(streaks, "a", outcome)
        assert streaks["a"].count == count
    assert "b" not in streaks


def test_causes_that_differ_in_numbers_only_are_one() -> None:
    def failed(why: str, constraint: str = "") -> str:
        return cause(
            BuildFailure(
                job=NOTHING,
                status=Status.COMPILE_ERROR,
                stage="lower",
                why=why,
                constraint=constraint,
            )
        )

    assert failed("x takes 17 of 0xff\nmore") == failed("x takes 1,024 of 0x10\nother")
    assert failed("anything", "acc_sram") == failed("else", "acc_sram")
    assert failed("anything", "acc_sram") != failed("anything", "inp_sram")
