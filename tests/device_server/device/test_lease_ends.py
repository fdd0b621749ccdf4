"""A lease that nobody renews ends what goes on under it, also when nobody else wants the device."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from kit.farm.in_process import CREDENTIALS, FakeRunner, Farm, eventually
from kit.manual_clock import ManualClock
from kit.objects.elves import Elf
from tilefarm.digest import Digest
from tilefarm.errors import LeaseError
from tilefarm.measurement import Measurement, RunJob

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient
from device_server.tracker.limits import TableLimits

CODE = Elf().build()
JOB = RunJob(artifact=Digest.of(CODE), entry="stuck", buffers=(), timeout_seconds=100.0)
BLOBS = {Digest.of(CODE): CODE}


def test_a_lease_that_is_not_renewed_takes_its_run_along(farm: Farm) -> None:
    clock = ManualClock()
    limits = TableLimits(device_ttl_seconds=10.0, lease_ttl_seconds=2.0)
    tracker = farm.tracker(limits=limits, clock=clock)
    runner = FakeRunner(target=farm.target)
    farm.device(tracker=tracker, runner=runner)
    with TrackerClient(tracker.address, CREDENTIALS) as client, ThreadPoolExecutor(1) as threads:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="driver that dies")
        assert lease is not None
        with DeviceClient(lease, CREDENTIALS) as device:
            run = threads.submit(lambda: device.run(JOB, request_id="r", blobs=BLOBS))
            eventually(lambda: bool(runner.seen))
            for _ in range(2):
                clock.advance(1.0)
                (state,) = client.states()
            assert state.owner == ""
            with pytest.raises(LeaseError, match="given back or has expired"):
                run.result()
        assert runner.release.is_set(), "it was told to stop"
        newer = client.acquire(farm.target.digest, wait_seconds=60.0, owner="another")
        assert newer is not None
        with DeviceClient(newer, CREDENTIALS) as device:
            echo = replace(JOB, entry="echo")
            assert isinstance(device.run(echo, request_id="r", blobs=BLOBS), Measurement)


def test_a_check_that_waits_for_its_turn_ends_with_its_lease(farm: Farm) -> None:
    tracker = farm.tracker(limits=TableLimits(device_ttl_seconds=3.0))
    runner = FakeRunner(target=farm.target)
    farm.device(tracker=tracker, runner=runner)
    with TrackerClient(tracker.address, CREDENTIALS) as client, ThreadPoolExecutor(2) as threads:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="driver")
        assert lease is not None
        with DeviceClient(lease, CREDENTIALS) as device, DeviceClient(lease, CREDENTIALS) as other:
            run = threads.submit(lambda: device.run(JOB, request_id="r", blobs=BLOBS))
            eventually(lambda: bool(runner.seen))
            check = threads.submit(other.confirm)
            client.release(lease)
            for call in (run, check):
                with pytest.raises(LeaseError):
                    call.result()
