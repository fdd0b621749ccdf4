"""A device that turns wrong, drifts or hangs says so, and is not leased until it is right again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from kit.farm.flaky import FlakyRunner
from kit.farm.in_process import CREDENTIALS, Farm, eventually
from kit.farm.watched_device import BLOBS, KERNEL, LIMITS, WATCHED, Bed, job, watched
from tilefarm.errors import (
    DeviceLostError,
    InfraError,
    LeaseError,
    SelfTestError,
    SuspectError,
)
from tilefarm.lease import Lease
from tilefarm.measurement import Measurement, RunFailure

from device_server.device.batch import Ask
from device_server.device.bitstream import Bitstream
from device_server.device.canary import Canary
from device_server.device.client import DeviceClient
from device_server.device.hook import Hook
from device_server.device.hooks import Hooks
from device_server.tracker.client import TrackerClient


def test_its_self_test_is_in_the_registration_and_in_its_capabilities(bed: Bed) -> None:
    with bed.device() as device:
        shown = device.lease.device.self_test
        assert shown.endswith(" 1364 cycles")
        assert device.capabilities().self_test == shown


def test_one_that_fails_its_self_test_never_serves(farm: Farm) -> None:
    with pytest.raises(SelfTestError, match="fails its self-test: the known kernel takes 2728"):
        farm.device(runner=FlakyRunner(kernel=KERNEL, pace=2.0))


def test_the_known_kernel_runs_after_so_many_runs_and_confirms_them(bed: Bed) -> None:
    with bed.device() as device:
        seen = [bed.runs(device, 1, first=number) for number in range(7)]
        assert seen == [1, 2, 3, 4, 0, 1, 2]
        checks = bed.runner.checks
        for _ in range(2):
            device.confirm()
            assert bed.runner.checks == checks + 1
        assert bed.runs(device, 1, first=7) == 1


def test_a_crash_is_followed_by_the_known_kernel(bed: Bed) -> None:
    with bed.device() as device:
        checks = bed.runner.checks
        (answer,) = device.run_batch([Ask(job=job("crash"), request_id="r", blobs={})])
        assert isinstance(answer.outcome, RunFailure)
        assert (answer.unchecked, bed.runner.checks) == (0, checks + 1)


def test_a_wrong_one_goes_into_quarantine_until_it_is_readmitted_and_right(bed: Bed) -> None:
    with bed.device() as device:
        bed.runner.flips_after = 2
        bed.runs(device, 4)
        with pytest.raises(
            SuspectError, match="device sim0 is not right any more: the known ker"
        ) as wrong:
            bed.runs(device, 1, first=4)
        assert not wrong.value.retry_seconds
        # Who missed that answer hears it again: what this lease gave is as suspect as before.
        with pytest.raises(SuspectError, match="device sim0 is not right any more"):
            bed.runs(device, 1, first=5)
        with pytest.raises(SuspectError, match="device sim0 is not right any more"):
            device.confirm()
    bed.says(lambda t: any("wrong_result" in s.quarantine for s in t.states()))
    assert bed.lease(wait_seconds=0.0) is None
    with bed.asked() as client:
        client.readmit("sim0")
        bed.says(lambda t: any("wrong_result" in s.quarantine for s in t.states()))
        bed.runner.flips_after = 1 << 30
        client.readmit("sim0")
    bed.says(lambda t: [s.quarantine for s in t.states()] == [""])
    eventually(lambda: bed.recovered)


def test_one_that_is_readmitted_while_a_job_runs_beats_on_and_is_checked_after_it(bed: Bed) -> None:
    with bed.device() as device, bed.asked() as client, ThreadPoolExecutor(1) as thread:
        running = thread.submit(lambda: device.run(job("stuck"), request_id="r"))
        try:
            eventually(lambda: bool(bed.runner.seen))
            checks = bed.runner.checks
            readmitted = up_seconds(client)
            client.readmit("sim0")
            eventually(lambda: up_seconds(client) > readmitted + 1.2 * LIMITS.device_ttl_seconds)
            assert bed.runner.checks == checks, "the job has the turn"
        finally:
            bed.runner.release.set()
        assert isinstance(running.result(), Measurement)
        eventually(lambda: bed.runner.checks == checks + 1)
    assert "expired" not in {event for event, _ in bed.farm.events}


def up_seconds(client: TrackerClient) -> float:
    """How long the device has lived, as of the last heartbeat that the tracker has heard."""
    (state,) = client.states()
    return state.usage.up_seconds if state.usage else 0.0


def test_it_says_under_which_lease_it_was_wrong_to_whoever_has_it_later(bed: Bed) -> None:
    with bed.device() as device:
        lease, fence = device.lease, device.lease.fence
        assert device.capabilities().spoiled_fence == 0
        bed.runner.flips_after = 2
        bed.runs(device, 4)
        with pytest.raises(SuspectError):
            bed.runs(device, 1, first=4)
        assert device.capabilities().spoiled_fence == fence, "also in quarantine, without a lease"
    bed.runner.flips_after = 1 << 30
    with bed.asked() as client:
        bed.says(lambda t: any(s.quarantine for s in t.states()))
        client.release(lease)
        client.readmit("sim0")
    eventually(lambda: bed.recovered)
    with bed.device() as device:
        assert device.lease.fence > fence
        assert device.capabilities().spoiled_fence == fence


def test_it_says_so_too_when_it_was_the_self_test_that_found_it_wrong(farm: Farm) -> None:
    tracker = farm.tracker(limits=LIMITS)

    def leased() -> Lease:
        with TrackerClient(tracker.address, CREDENTIALS) as client:
            lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
            assert lease is not None
            return lease

    first = farm.device(tracker=tracker, runner=FlakyRunner(kernel=KERNEL))
    lease = leased()
    with DeviceClient(lease, CREDENTIALS) as device:
        device.ensure(BLOBS)
        assert isinstance(device.run(job(), request_id="r"), Measurement)
    first.stop()
    with pytest.raises(SelfTestError):
        farm.device(tracker=tracker, runner=FlakyRunner(kernel=KERNEL, flips_after=-1))
    farm.device(tracker=tracker, runner=FlakyRunner(kernel=KERNEL))
    with DeviceClient(leased(), CREDENTIALS) as device:
        assert device.capabilities().spoiled_fence == lease.fence


def test_one_that_drifts_rests_until_its_pace_is_right(bed: Bed) -> None:
    with bed.device() as device:
        bed.runner.pace = 1.05
        bed.runs(device, 3)
        for _ in range(2):  # Who missed the first answer hears it again.
            with pytest.raises(SuspectError, match=r"takes 5\.0% more time than before") as drift:
                device.confirm()
            assert drift.value.retry_seconds == WATCHED.cooldown_seconds
    bed.says(lambda t: any("5.0% more time" in s.resting for s in t.states()))
    assert not bed.recovered
    bed.runner.pace = 1.0
    bed.says(lambda t: [s.resting for s in t.states()] == [""])
    assert bed.recovered


def test_a_run_that_hangs_is_told_and_nobody_gets_the_device(bed: Bed) -> None:
    with bed.device() as device:
        stuck = replace(job("stuck"), timeout_seconds=0.1)
        with pytest.raises(DeviceLostError, match="hangs: a run of artifact"):
            device.run(stuck, request_id="r")
    bed.says(lambda t: any("hangs: a run of artifact" in s.resting for s in t.states()))
    assert bed.lease(wait_seconds=0.0) is None
    bed.runner.release.set()


def sh(name: str, script: str) -> Hook:
    return Hook(name=name, command=("/bin/sh", "-c", script))


def test_a_board_that_hangs_is_switched_off_and_on_and_its_server_ends(
    farm: Farm, tmp_path: Path
) -> None:
    (tmp_path / "vta.bit").write_bytes(b"bits")
    hooks = Hooks(
        power_cycle=sh("power_cycle", f"echo off on >> {tmp_path}/log"),
        bitstream=Bitstream(
            file=tmp_path / "vta.bit", program=sh("bitstream", f"echo bits >> {tmp_path}/log")
        ),
    )

    def done() -> list[str]:
        return (tmp_path / "log").read_text().splitlines()

    tracker, runner = farm.tracker(), FlakyRunner(kernel=KERNEL)
    server = farm.device(
        tracker=tracker, runner=runner, settings=lambda s: replace(watched(s), hooks=hooks)
    )
    assert done() == ["bits"]
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
    assert lease is not None
    with DeviceClient(lease, CREDENTIALS) as device:
        device.ensure(BLOBS)
        with pytest.raises(DeviceLostError):
            device.run(replace(job("stuck"), timeout_seconds=0.1), request_id="r")
    ended = server.ended_with(60.0)
    assert isinstance(ended, DeviceLostError)
    assert "its power was cut and is on again" in ended.what
    runner.release.set()
    farm.device(tracker=tracker, runner=runner, settings=lambda s: replace(watched(s), hooks=hooks))
    assert done() == ["bits", "off on", "bits"]


def test_a_board_that_hangs_in_a_check_after_a_rest_is_switched_off_and_on(
    farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker, runner = farm.tracker(), FlakyRunner(kernel=KERNEL)
    hooks = Hooks(power_cycle=sh("power_cycle", f"echo off on >> {tmp_path}/log"))
    server = farm.device(
        tracker=tracker, runner=runner, settings=lambda s: replace(watched(s), hooks=hooks)
    )
    monkeypatch.setattr(Canary, "timeout_seconds", 0.1)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
    assert lease is not None
    with DeviceClient(lease, CREDENTIALS) as device:
        device.ensure(BLOBS)
        device.run(job(), request_id="r")
        runner.pace = 2.0
        with pytest.raises(SuspectError):
            device.confirm()
        runner.hangs = True
    ended = server.ended_with(60.0)
    assert isinstance(ended, DeviceLostError)
    assert "its power was cut and is on again" in ended.what
    assert (tmp_path / "log").read_text() == "off on\n"
    runner.release.set()


def test_a_hook_that_fails_leaves_the_board_hanging_and_is_told(farm: Farm) -> None:
    tracker, runner = farm.tracker(limits=LIMITS), FlakyRunner(kernel=KERNEL)
    hooks = Hooks(power_cycle=sh("power_cycle", "echo no relay; exit 1"))
    farm.device(tracker=tracker, runner=runner, settings=lambda s: replace(watched(s), hooks=hooks))
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
        assert lease is not None
        with DeviceClient(lease, CREDENTIALS) as device:
            device.ensure(BLOBS)
            with pytest.raises(DeviceLostError):
                device.run(replace(job("stuck"), timeout_seconds=0.1), request_id="r")
        eventually(
            lambda: any(
                event == "power_cycle" and "no relay" in str(fields["why"])
                for event, fields in farm.events
            )
        )
        eventually(lambda: any("hangs" in s.resting for s in client.states()))
    runner.release.set()


def test_a_board_that_cannot_be_programmed_never_serves(farm: Farm, tmp_path: Path) -> None:
    bitstream = Bitstream(file=tmp_path / "vta.bit", program=sh("bitstream", "exit 1"))
    with pytest.raises(InfraError, match="cannot read the bitstream"):
        farm.device(settings=lambda s: replace(s, hooks=Hooks(bitstream=bitstream)))


def test_nobody_confirms_without_the_lease(bed: Bed) -> None:
    with bed.device() as device:
        forged = replace(device.lease, ticket=b"made up")
        with DeviceClient(forged, CREDENTIALS) as other, pytest.raises(LeaseError, match="not giv"):
            other.confirm()
