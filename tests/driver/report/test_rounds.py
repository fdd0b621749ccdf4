"""What rounds add up to, and that a control takes the machine's doing out of a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.reports.measured_nights import Measured
from kit.reports.row_nights import QUIET, SECONDS
from tilefarm.digest import Digest

from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.judging.judged_row import judged
from driver.jobs.nightly.judging.past import RowPast
from driver.jobs.nightly.records import Judged, Sample, Verdict
from driver.report.rounds import Round, RoundsTime, again_seconds, rounds_time

SPEEDS = st.lists(st.floats(0.5, 2.0), min_size=4, max_size=40)


@given(SPEEDS, st.floats(0.1, 10.0))
def test_a_machine_that_changes_its_speed_changes_no_ratio(
    speeds: list[float], ratio: float
) -> None:
    time = rounds_time([Round(ratio * speed, speed) for speed in speeds])
    assert time.relative == pytest.approx(ratio)
    assert time.low <= time.seconds <= time.high


def test_a_round_that_was_disturbed_moves_nothing() -> None:
    rounds = [Round(2.0, 1.0)] * 9 + [Round(9.0, 1.0), Round(2.0, 7.0)]
    assert rounds_time(rounds).relative == pytest.approx(2.0)
    with pytest.raises(ValueError, match="3 rounds"):
        rounds_time(rounds[:3])


def test_the_second_rounds_are_told_as_if_their_control_took_as_long() -> None:
    first, again = (rounds_time([Round(2.0 * speed, speed)] * 4, "code") for speed in (1.0, 1.5))
    assert again_seconds(first, again) == pytest.approx(2.0)
    assert first.control_code == "code"
    bare = rounds_time([Round(2.0)] * 4, "code")
    assert bare == RoundsTime(seconds=2.0, low=2.0, high=2.0)
    assert again_seconds(bare, first) == bare.relative == 2.0


def played(*nights: tuple[float, float | None]) -> list[Verdict]:
    """The verdicts of nights with these costs and controls, each measured twice."""
    samples, said = list[Sample](), list[Judged]()
    for at, (cost, control) in enumerate(nights):
        measured = Measured(clock=SECONDS, cost=cost, code=f"{at}", again=cost, layers=False)
        sample = measured.sample(f"n{at:02}", Digest.of(b"A"))
        sample = replace(sample, time=replace(sample.time, control=control))
        past = RowPast(samples=tuple(samples), judged=tuple(said))
        said.append(judged(sample, past, QUIET, Gates()))
        samples.append(sample)
    return [each.verdict for each in said]


def test_what_slows_the_control_too_is_the_machine() -> None:
    quiet = [(1.0, 0.5)] * 5
    assert played(*quiet, (1.2, 0.6), (1.2, 0.6))[5:] == [Verdict.UNCHANGED] * 2
    assert played(*quiet, (1.05, 0.5), (1.26, 0.6))[5:] == [Verdict.UNSTABLE, Verdict.SLOWER]


def test_nights_with_and_without_a_control_are_not_compared() -> None:
    quiet = [(1.0, None)] * 5
    assert played(*quiet, (1.0, 0.5))[5:] == [Verdict.INSUFFICIENT_HISTORY]
    assert played(*quiet, (1.0, 0.5), (1.0, None))[6:] == [Verdict.UNCHANGED]
