"""Devices timed by the clock share a search if their known kernels take as long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kit.farm.clocked import clocked_device as device
from kit.farm.in_process import CREDENTIALS, FakeRunner, Farm, Server, eventually
from kit.farm.watched_device import BLOBS, job, watched
from kit.manual_clock import ManualClock
from kit.search.toy_spaces import timed
from tilefarm.errors import NoDeviceError, SuspectError
from tilefarm.lease import DeviceInfo, Lease
from tilefarm.measurement import Measurement, RunFailure, RunJob

from device_server.tracker.client import TrackerClient
from device_server.tracker.limits import TableLimits
from driver.farm.clock_baselines import ClockBaselines
from driver.farm.comparable import comparable, reference_among, why_left_out
from driver.farm.farms import RemoteFarm
from driver.farm.leases import Leases


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (device("a", 10), device("b", 10.9), True),
        (device("a", 10), device("b", 11.1), False),
        (device("a", 10), device("b", 11.1, spread=0.2), True),
        (device("a", 10), device("b", 0), True),
    ],
)
def test_a_difference_within_the_noise_is_none(
    one: DeviceInfo, other: DeviceInfo, same: bool
) -> None:
    assert comparable(one, other) == comparable(other, one) == same


def test_the_most_alike_are_the_reference_and_of_those_the_fastest() -> None:
    devices = [device("a", 8), device("b", 8.1), device("c", 5), device("d", 20)]
    for given in (devices, devices[::-1]):
        assert reference_among(given) == devices[0]
    assert reference_among([device("slow", 8), device("fast", 5)]) == device("fast", 5)
    assert reference_among([device("older", 0)]) is None


def test_who_is_left_out_is_told_with_both_times() -> None:
    slow, fast = device("slow", 8), device("fast", 5)
    assert why_left_out(slow, fast) == (
        "its known kernel takes 60.0% more time (8.00 us) than that of fast (5.00 us), and 10%"
        " would be noise: times of the two cannot be compared"
    )
    assert "37.5% less time" in why_left_out(fast, slow)
    assert not why_left_out(slow, None)


class Paced(FakeRunner):
    """A processor on which the known kernel takes so long."""

    def __init__(self, microseconds: float) -> None:
        super().__init__()
        self.microseconds = microseconds

    def known(self, job: RunJob) -> Measurement | RunFailure:
        return Measurement(
            artifact=job.artifact,
            device="fake",
            counters=None,
            wall_time=timed(self.microseconds * 1e-6),
        )


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path) as running:
        yield running


def names_at(tracker: Server) -> set[str]:
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        return {device.name for device in client.devices()}


def leases_on(farm: Farm, tracker: Server, **microseconds: float) -> Leases:
    for name, each in microseconds.items():
        farm.device(name, tracker=tracker, runner=Paced(each))
    eventually(lambda: names_at(tracker) >= set(microseconds))
    remote = RemoteFarm(tracker.address, CREDENTIALS)
    return Leases(remote, farm.target, owner="test", clock=ManualClock())


def test_a_search_has_the_devices_that_are_alike_and_says_why_not_the_other(farm: Farm) -> None:
    with closing(leases_on(farm, farm.tracker(), a=16, b=10, c=10.2)) as leases:
        leases.keep_to_one_clock(None)
        assert {leases.acquire(60.0).device.name for _ in range(2)} == {"b", "c"}
        with pytest.raises(NoDeviceError, match="a its known kernel takes 60"):
            leases.acquire(60.0)
        assert [line.partition(":")[0] for line in leases.left_out] == ["a is left out"]


def test_a_search_whose_like_devices_are_gone_is_told_what_to_do(farm: Farm) -> None:
    tracker = farm.tracker()
    first = farm.device("first", tracker=tracker, runner=Paced(10))
    with closing(leases_on(farm, tracker)) as leases:
        leases.keep_to_one_clock(None)
        eventually(lambda: names_at(tracker) == {"first"})
        leases.release(leases.acquire(60.0))
        first.stop()
        farm.device("second", tracker=tracker, runner=Paced(20))
        eventually(lambda: names_at(tracker) == {"second"})
        with pytest.raises(NoDeviceError, match="than that of first") as raised:
            leases.acquire(60.0)
        assert "start the device's server anew" in raised.value.hint


def test_who_compares_no_times_has_them_all(farm: Farm) -> None:
    with closing(leases_on(farm, farm.tracker(), a=16, b=10)) as leases:
        assert {leases.acquire(60.0).device.name for _ in range(2)} == {"a", "b"}
        assert not leases.left_out


def drifts(leases: Leases, lease: Lease) -> None:
    """Who has the device finds out that it has another pace, and says that it rests."""
    with leases.connect(lease) as device:
        device.ensure(BLOBS)
        device.run(job(), request_id="r")
        with pytest.raises(SuspectError, match="less time than before") as drift:
            device.confirm()
    leases.release(lease, why=drift.value.what)


def test_a_device_is_told_by_the_pace_that_it_has_now(farm: Farm) -> None:
    """A search that had it goes on with it; one that begins compares it as it is now."""
    tracker = farm.tracker(limits=TableLimits(device_ttl_seconds=3.0))
    runner = Paced(10)
    farm.device("a", tracker=tracker, runner=runner, settings=watched)
    with closing(leases_on(farm, tracker)) as leases, closing(leases_on(farm, tracker)) as others:
        leases.keep_to_one_clock(None, paces := ClockBaselines())
        eventually(lambda: names_at(tracker) == {"a"})
        leases.release(leases.acquire(60.0))
        runner.microseconds = 7
        drifts(leases, leases.acquire(60.0))  # Nothing is kept of it yet: it is as it is now.
        lease = leases.acquire(30.0)
        assert paces.note(lease.device)
        runner.microseconds = 5
        drifts(leases, lease)
        again = leases.acquire(30.0)
        assert again.device.epoch == lease.device.epoch
        assert again.device.known_seconds == pytest.approx(5e-6)
        assert paces.at_first(again.device).known_seconds == lease.device.known_seconds
        assert not leases.left_out
        farm.device("b", tracker=tracker, runner=Paced(5.1))
        eventually(lambda: names_at(tracker) == {"a", "b"})
        with pytest.raises(NoDeviceError, match=r"b its known kernel takes 27\.1% less time"):
            leases.acquire(0.5)
        leases.release(again)
        others.keep_to_one_clock(None)
        assert {others.acquire(60.0).device.name for _ in range(2)} == {"a", "b"}


def test_a_search_that_goes_on_knows_the_pace_that_its_devices_had(farm: Farm) -> None:
    with closing(leases_on(farm, farm.tracker(), a=20, b=10, c=20)) as leases:
        leases.keep_to_one_clock(None, ClockBaselines({"a": 1e-5, "gone": 1e-5}))
        assert {leases.acquire(60.0).device.name for _ in range(2)} == {"a", "b"}
        with pytest.raises(NoDeviceError, match=r"c its known kernel takes 100\.0% more time"):
            leases.acquire(0.5)
