"""A device that cannot be checked, for lack of room, rests until it can be, and spoils nothing."""

from __future__ import annotations

import pytest
from kit.farm.flaky import FlakyRunner
from kit.farm.in_process import CREDENTIALS, Farm, eventually
from kit.farm.watched_device import BLOBS, KERNEL, LIMITS, Bed, job
from tilefarm.errors import DeviceLostError, InfraError, SuspectError
from tilefarm.measurement import Measurement

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient


def test_one_whose_disk_is_full_rests_until_it_can_be_checked_and_spoils_nothing(bed: Bed) -> None:
    with bed.device() as device:
        bed.runs(device, 3)
        bed.runner.full = True
        with pytest.raises(
            DeviceLostError, match="cannot be checked: the runner failed: No"
        ) as lost:
            device.confirm()
        assert not isinstance(lost.value, SuspectError)
        bed.says(lambda t: any("free some space on its disk" in s.resting for s in t.states()))
        with bed.asked() as client:
            assert [s.quarantine for s in client.states()] == [""]
        assert not bed.recovered
        (unchecked,) = {f["unchecked"] for event, f in bed.farm.events if event == "not_checked"}
        assert unchecked == 3, "what ran is no less doubtful after a check that was not made"
        bed.runner.full = False
        bed.says(lambda t: [s.resting for s in t.states()] == [""])
        assert bed.recovered
        assert device.capabilities().spoiled_fence == 0
        left = bed.runs(device, 1, first=3)
        assert left == 1, "the check that was made after all has confirmed the others"


def test_the_run_after_which_it_cannot_be_checked_is_not_answered(bed: Bed) -> None:
    with bed.device() as device:
        bed.runs(device, 4)
        bed.runner.full = True
        with pytest.raises(DeviceLostError, match="cannot be checked"):
            bed.runs(device, 1, first=4)
        bed.runner.full = False
        eventually(lambda: bed.recovered)
        bed.runs(device, 1, first=4)


def test_a_readmitted_one_whose_disk_is_full_serves_when_there_is_room(bed: Bed) -> None:
    with bed.device() as device:
        bed.runner.flips_after = 0
        with pytest.raises(SuspectError):
            bed.runs(device, 5)
    bed.says(lambda t: any("wrong_result" in s.quarantine for s in t.states()))
    bed.runner.full = True
    with bed.asked() as client:
        client.readmit("sim0")
    bed.says(lambda t: any("cannot be checked" in s.resting for s in t.states()))
    bed.runner.flips_after = 1 << 30
    bed.runner.full = False
    bed.says(lambda t: [s.resting + s.quarantine for s in t.states()] == [""])
    assert bed.recovered


def test_one_that_cannot_be_checked_at_the_start_spoils_no_lease(farm: Farm) -> None:
    tracker = farm.tracker(limits=LIMITS)
    first = farm.device(tracker=tracker, runner=FlakyRunner(kernel=KERNEL))
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
        assert lease is not None
        with DeviceClient(lease, CREDENTIALS) as device:
            device.ensure(BLOBS)
            assert isinstance(device.run(job(), request_id="r"), Measurement)
        client.release(lease)
    first.stop()
    with pytest.raises(InfraError, match="device sim0 cannot make its self-test: the runner"):
        farm.device(tracker=tracker, runner=FlakyRunner(kernel=KERNEL, full=True))
    farm.device(tracker=tracker, runner=FlakyRunner(kernel=KERNEL))
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        again = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
        assert again is not None
        with DeviceClient(again, CREDENTIALS) as device:
            assert device.capabilities().spoiled_fence == 0
