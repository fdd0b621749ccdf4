"""A clock's times: slower is what was so twice tonight and in two nights, beyond any noise."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.reports.row_nights import QUIET, SECONDS, RowNights

from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.judging.level import level
from driver.jobs.nightly.judging.machine_noise import machine_noise, student, tail
from driver.jobs.nightly.judging.past import RowPast, comparable
from driver.jobs.nightly.judging.wall_time import bounds, looks_changed
from driver.jobs.nightly.records import Verdict

STEADY = [1.000, 1.001, 0.999, 1.002, 0.998]


@pytest.fixture
def row() -> RowNights:
    nights = RowNights(clock=SECONDS)
    assert nights.those(STEADY) == ["INSUFFICIENT_HISTORY"] * 5
    return nights


def test_how_many_nights_are_lacking_is_said() -> None:
    nights = RowNights(clock=SECONDS)
    assert nights.night(1.0).why == "5 nights lacking of 5 on this machine"
    nights.those(STEADY[:3])
    assert nights.night(1.0).why == "1 night lacking of 5 on this machine"


def test_slower_takes_two_nights(row: RowNights) -> None:
    first = row.night(1.03)
    assert first.verdict is Verdict.UNSTABLE
    assert first.why.startswith("3.0 % slower than the median of 5 nights; noise here is within")
    assert first.why.endswith("; the next night decides")
    assert not first.verdict.fails
    second = row.night(1.031)
    assert second.verdict is Verdict.SLOWER
    assert second.change == pytest.approx(0.031)
    assert second.against == "n0005", "the last night that was as ever"
    assert row.those([1.03] * 20) == ["SLOWER"] * 20, "until somebody accepts it"


def test_a_night_that_was_disturbed_is_no_slowdown(row: RowNights) -> None:
    assert row.those([1.05, 1.0, 1.05, 1.0]) == ["UNSTABLE", "UNCHANGED"] * 2


def test_what_the_second_measurement_does_not_confirm_is_noise(row: RowNights) -> None:
    assert row.night(1.08, again=1.001).verdict is Verdict.UNCHANGED
    assert row.night(1.08, again=1.06).verdict is Verdict.UNSTABLE
    assert row.night(1.08, again=0.94).verdict is Verdict.UNCHANGED


def test_faster_takes_two_nights_and_is_the_new_level(row: RowNights) -> None:
    assert row.those([0.9, 0.9, 0.9]) == ["UNSTABLE", "FASTER", "UNCHANGED"]
    assert row.those([1.0, 1.0]) == ["UNSTABLE", "SLOWER"]


def test_up_and_down_is_neither(row: RowNights) -> None:
    assert row.those([1.05, 0.95, 1.05, 0.95]) == ["UNSTABLE"] * 4


def test_what_is_accepted_is_the_new_level(row: RowNights) -> None:
    row.those([1.05, 1.05])
    row.accept("n0007")
    assert row.those([1.05, 1.051, 1.1, 1.1]) == ["UNCHANGED"] * 2 + ["UNSTABLE", "SLOWER"]


def test_code_that_has_not_changed_is_not_slower(row: RowNights) -> None:
    row.night(1.0, code="same")
    said = [row.night(1.05, code="same") for _ in range(2)]
    assert [each.verdict for each in said] == [Verdict.UNSTABLE] * 2
    assert said[0].why.endswith("the code is that of night n0006, so it is the machine")


def test_other_machines_do_not_count(row: RowNights) -> None:
    moved = row.night(2.0, machine="board1")
    assert moved.verdict is Verdict.DEVICE_CHANGED
    assert moved.why == ("the first night on board1 as it is now; what changed: it was board0")
    assert row.night(2.0, machine="board1").verdict is Verdict.INSUFFICIENT_HISTORY
    assert row.night(1.0).verdict is Verdict.UNCHANGED


def test_an_adopted_set_is_compared_in_its_own_units(row: RowNights) -> None:
    row.night(1.0, found=("B", 0.5))
    assert row.those([0.501, 0.56, 0.56], schedules="B") == ["UNCHANGED", "UNSTABLE", "SLOWER"]


def test_the_ratio_of_two_sets_is_not_better_known_than_it_is(row: RowNights) -> None:
    def beyond(schedules: str) -> float:
        sample = RowNights(clock=SECONDS)
        sample.night(1.0, schedules=schedules)
        points = comparable(RowPast(samples=row.samples, judged=row.judged), sample.samples[0])
        return bounds(level(points), QUIET, Gates(seconds=0.0)).slower

    row.night(1.0, found=("B", 0.5))
    assert beyond("B") > 1.5 * beyond("A")


def test_only_what_looks_changed_is_measured_again(row: RowNights) -> None:
    def again(cost: float) -> bool:
        nights = RowNights(clock=SECONDS)
        nights.night(cost)
        points = comparable(RowPast(samples=row.samples, judged=row.judged), nights.samples[0])
        return looks_changed(nights.samples[0], level(points), QUIET, Gates())

    assert [again(cost) for cost in (0.9, 1.0, 1.1)] == [True, False, True]


def test_a_row_as_noisy_as_its_own_past_is_not_called_slower() -> None:
    """Two states of a machine, told by no clock: three nights of ten are 6 % slower."""
    chance = random.Random(5)
    nights = RowNights(clock=SECONDS)
    costs = [1.06 if chance.random() < 0.3 else 1.0 for _ in range(100)]
    said = nights.those([cost * (1 + chance.gauss(0, 0.001)) for cost in costs])
    assert "SLOWER" not in said[30:]


@given(st.lists(st.floats(-0.1, 0.1), min_size=1, max_size=300))
def test_noise_covers_what_it_was_measured_from(residuals: list[float]) -> None:
    noise = machine_noise([residuals[:7], residuals[7:]])
    most = math.floor(len(residuals) / math.sqrt(4000))
    assert sum(each > noise.slower for each in residuals) <= max(1, most)
    assert sum(-each > noise.faster for each in residuals) <= max(1, most)
    assert noise.count == len(residuals)
    assert noise.spread >= 0


def test_few_nights_ask_for_more_deviations() -> None:
    assert student(3.0, 1e9) == pytest.approx(3.0)
    assert 3.0 < student(3.0, 40) < student(3.0, 5)
    # t with 30 degrees of freedom is 2.750 at the 99.5 % where a normal value is 2.576
    assert student(2.5758, 30) == pytest.approx(2.750, abs=0.001)
    assert tail([]) == 0.0
    assert machine_noise([]).spread == 0.0
