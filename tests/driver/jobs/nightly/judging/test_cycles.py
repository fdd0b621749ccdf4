"""Counted cycles are exact: every change is told, and what is accepted never creeps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.reports.row_nights import RowNights
from tilefarm.errors import SettingsError

from driver.jobs.nightly.judging.cycles import cycles_verdict
from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.records import Verdict


@pytest.mark.parametrize(
    ("cycles", "verdict", "why"),
    [
        (1000, Verdict.UNCHANGED, ""),
        (999, Verdict.FASTER, "1 cycles fewer than accepted: 0.10 %"),
        (1005, Verdict.UNCHANGED, "5 cycles more than accepted: 0.50 %, within the gate of 0.50 %"),
        (1006, Verdict.SLOWER, "6 cycles more than accepted: 0.60 %"),
    ],
)
def test_a_change_is_told_at_once(cycles: int, verdict: Verdict, why: str) -> None:
    row = RowNights()
    assert row.night(1000).verdict is Verdict.INSUFFICIENT_HISTORY
    said = row.night(cycles)
    assert (said.verdict, said.why, said.against) == (verdict, why, "n0001")
    assert said.change == pytest.approx(cycles / 1000 - 1)


def test_a_little_every_night_fails_when_the_sum_does() -> None:
    row = RowNights()
    assert row.those([1000, 1002, 1004, 1006, 1008])[1:] == ["UNCHANGED"] * 2 + ["SLOWER"] * 2


def test_slower_stays_so_until_somebody_accepts_it() -> None:
    row = RowNights()
    assert row.those([1000, 1100, 1100])[1:] == ["SLOWER"] * 2
    row.accept("n0002")
    assert row.those([1100, 1090, 1100]) == ["UNCHANGED", "FASTER", "SLOWER"]


def test_a_set_that_is_adopted_is_compared_in_its_own_units() -> None:
    row = RowNights()
    row.those([1000, 1000])
    assert row.night(1000, found=("B", 700)).verdict is Verdict.UNCHANGED
    assert row.those([700, 704], schedules="B") == ["UNCHANGED", "SLOWER"]
    row.night(700, schedules="B", found=("C", 511))
    assert row.those([511, 510, 512], schedules="C") == ["UNCHANGED", "FASTER", "UNCHANGED"]


def test_a_slowdown_does_not_hide_behind_an_adoption_in_the_same_night() -> None:
    row = RowNights()
    row.night(1000)
    assert row.night(1100, found=("B", 770)).verdict is Verdict.SLOWER
    said = row.night(770, schedules="B")
    assert (said.verdict, said.why) == (Verdict.SLOWER, "70 cycles more than accepted: 10 %")
    row.accept("n0002")
    assert row.night(770, schedules="B").verdict is Verdict.UNCHANGED


def test_schedules_that_nothing_was_measured_beside_begin_anew() -> None:
    row = RowNights()
    row.night(1000)
    assert row.night(2000, schedules="B").verdict is Verdict.INSUFFICIENT_HISTORY
    assert row.night(1000).verdict is Verdict.UNCHANGED, "the first ones are compared still"


COUNTS = st.integers(1, 10**12)


@given(COUNTS, COUNTS, st.sampled_from([0.0, 0.005, 0.1]))
def test_verdicts_of_cycles_are_exact(accepted: int, cycles: int, gate: float) -> None:
    verdict = cycles_verdict(accepted, cycles, gate)
    per_mille = round(1000 * gate)
    assert (verdict is Verdict.FASTER) == (cycles < accepted)
    assert (verdict is Verdict.SLOWER) == (1000 * (cycles - accepted) > per_mille * accepted)


@given(st.lists(st.integers(900, 1100), min_size=2, max_size=8), COUNTS, COUNTS)
def test_an_adoption_changes_no_verdict(costs: list[int], slow: int, fast: int) -> None:
    """Two sets whose cycles are in one ratio give the same verdicts, whenever they are swapped."""
    for adopted in range(1, len(costs)):
        plain, swapped = RowNights(), RowNights()
        for at, cost in enumerate(costs):
            said = plain.night(cost * slow).verdict
            if at < adopted:
                found = ("B", cost * fast) if at == adopted - 1 else None
                same = swapped.night(cost * slow, found=found)
            else:
                same = swapped.night(cost * fast, schedules="B")
            assert same.verdict is said


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5, float("nan")])
def test_a_gate_above_a_hundred_percent_is_refused(share: float) -> None:
    with pytest.raises(SettingsError, match="not between 0 and 100 %"):
        Gates(cycles=share)
