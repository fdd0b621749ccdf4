"""Times of a device whose pace changes are told as they would have been at first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kit.farm.clocked import clocked_device as device
from kit.search.toy_spaces import timed
from tilefarm.digest import Digest
from tilefarm.lease import DeviceInfo
from tilefarm.measurement import Counters, Measurement

from driver.farm.clock_baselines import ClockBaselines

MEASURED = Measurement(
    artifact=Digest.of(b"a"), device="cpu0", counters=None, wall_time=timed(6e-5, noise=0.1)
)


def median(paces: ClockBaselines, now: DeviceInfo) -> float:
    time = paces.told(MEASURED, now).wall_time
    assert time is not None
    assert MEASURED.wall_time is not None
    assert time.error == pytest.approx(MEASURED.wall_time.error)
    return time.median_seconds


def test_times_are_told_at_the_pace_that_the_device_had_at_first() -> None:
    paces = ClockBaselines()
    assert [paces.note(device("cpu0", each)) for each in (10, 15, 5)] == [True, False, False]
    assert median(paces, device("cpu0", 15)) == pytest.approx(4e-5)
    assert median(paces, device("cpu0", 5)) == pytest.approx(12e-5)
    assert "takes 15.00 us, not 10.00 us" in paces.remark(device("cpu0", 15))


def test_a_pace_within_the_noise_is_the_same() -> None:
    paces = ClockBaselines({"cpu0": 1e-5})
    for now in (device("cpu0", 10.5), device("cpu0", 9.5), device("cpu1", 20)):
        assert paces.told(MEASURED, now) is MEASURED
        assert not paces.remark(now)


def test_cycles_and_devices_that_tell_no_pace_are_left_alone() -> None:
    paces = ClockBaselines({"sim0": 10 * 1e-6})
    counted = replace(MEASURED, wall_time=None, counters=Counters(cycles=9))
    assert paces.told(counted, device("sim0", 20)) is counted
    older = device("old", 0)
    assert not paces.note(older)
    assert paces.reference(older) == device("sim0", 10)
    assert paces.told(MEASURED, older) is MEASURED


def test_a_device_is_compared_as_it_was_at_its_first_time() -> None:
    paces = ClockBaselines()
    assert paces.reference(device("cpu1", 12)) is None
    paces.note(device("cpu0", 10))
    assert paces.reference(device("cpu1", 12)) == device("cpu0", 10)
    assert paces.at_first(device("cpu0", 15)) == device("cpu0", 10)
    assert paces.at_first(device("cpu1", 12)) == device("cpu1", 12)
