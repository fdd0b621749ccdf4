"""How long a kernel takes: the clocks of devices, wall times, and what a trial costs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.messages.records import wall_times
from tilefarm.digest import Digest
from tilefarm.measurement import (
    Counters,
    DeviceClock,
    Measurement,
    Precision,
    Status,
    Trial,
    WallTime,
)

TIME = WallTime(
    minimum_seconds=9e-6,
    p10_seconds=9.5e-6,
    median_seconds=10e-6,
    p90_seconds=12e-6,
    calls=100,
    regions=25,
    rejected=2,
)
TRIAL = Trial(workload=Digest.of(b"w"), trace=Digest.of(b"t"), point=(), status=Status.OK)


def test_the_spread_is_relative_and_the_error_falls_with_the_root_of_the_regions() -> None:
    assert TIME.spread == pytest.approx(0.25)
    assert TIME.error == pytest.approx(0.489 * 0.25 / 5, rel=1e-3)
    assert replace(TIME, regions=100).error == pytest.approx(TIME.error / 2)


@given(wall_times())
def test_spread_and_error_are_never_negative(time: WallTime) -> None:
    assert 0 <= time.error <= time.spread


@pytest.mark.parametrize(
    "wrong",
    [
        {"minimum_seconds": 0.0},
        {"minimum_seconds": -1e-6},
        {"minimum_seconds": math.nan},
        {"p90_seconds": math.inf},
        {"p90_seconds": math.nan},
        {"median_seconds": 9.4e-6},
        {"median_seconds": 13e-6},
        {"calls": 0},
        {"regions": 0},
        {"rejected": -1},
    ],
    ids=str,
)
def test_what_cannot_be_a_time_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"wall times|regions of"):
        replace(TIME, **wrong)


@given(st.sampled_from(["error", "seconds"]), st.sampled_from([0.0, -1.0, math.nan, math.inf]))
def test_a_precision_is_positive(name: str, value: float) -> None:
    with pytest.raises(ValueError, match="a precision of"):
        Precision(**{"error": 0.01, "seconds": 1.0, name: value})


def test_a_trial_costs_cycles_where_they_are_counted_and_seconds_elsewhere() -> None:
    counted, timed = replace(TRIAL, cycles=7), replace(TRIAL, wall_time=TIME)
    assert (counted.clock, counted.cost) == (DeviceClock.CYCLES, 7.0)
    assert (timed.clock, timed.cost) == (DeviceClock.SECONDS, 10e-6)
    assert (counted.cost_seconds, timed.cost_seconds) == (None, 10e-6)
    assert replace(counted, wall_time=TIME).clock is DeviceClock.CYCLES
    assert replace(counted, wall_time=TIME).cost_seconds is None


def test_a_trial_is_as_noisy_as_two_errors_of_its_median_and_counters_are_exact() -> None:
    assert replace(TRIAL, wall_time=TIME).noise == 2 * TIME.error > 0
    for exact in (TRIAL, replace(TRIAL, cycles=7), replace(TRIAL, cycles=7, wall_time=TIME)):
        assert exact.noise == 0


def test_nothing_is_no_time() -> None:
    for none in (TRIAL, replace(TRIAL, cycles=0)):
        assert (none.clock, none.cost) == (None, None)


def test_what_counts_nothing_has_no_cycles() -> None:
    silent = Measurement(artifact=Digest.of(b"a"), device="board1", counters=None)
    assert silent.cycles is None
    with pytest.raises(ValueError, match="board1 counts nothing"):
        _ = silent.counted
    assert replace(silent, counters=Counters(cycles=7)).cycles == 7
