"""Runs that a device refuses: its tracker lists them, after a restart too, until a readmission."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS, Farm, eventually
from kit.objects.elves import Elf
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Role, RunFailure, RunJob
from tilefarm.rpc.tracker_calls import Heartbeat, HeartbeatReply

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient
from device_server.tracker.leases import LeaseTable
from device_server.tracker.limits import TableLimits

CODE, DATA = Elf().build(), bytes(64)
BLOBS = {Digest.of(CODE): CODE, Digest.of(DATA): DATA}
LIMITS = TableLimits(device_ttl_seconds=2.0)
"""Devices beat twice a second and more."""

BUFFERS = (BufferSpec(name="x", role=Role.INPUT, nbytes=64, content=Digest.of(DATA)),)
JOB = RunJob(artifact=Digest.of(CODE), entry="crash", buffers=BUFFERS)


def crash(farm: Farm, client: TrackerClient, times: int) -> None:
    lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
    assert lease is not None
    with DeviceClient(lease, CREDENTIALS) as device:
        device.ensure(BLOBS)
        for number in range(times):
            outcome = device.run(JOB, request_id=f"{lease.lease_id} {number}")
            assert isinstance(outcome, RunFailure)
    client.release(lease)


def forgiven(farm: Farm) -> bool:
    return any(event == "forgiven" for event, _ in farm.events)


def test_they_are_listed_until_the_device_is_readmitted(farm: Farm, tmp_path: Path) -> None:
    tracker = farm.tracker(limits=LIMITS, state=tmp_path / "state")
    farm.device(tracker=tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        crash(farm, client, times=1)
        assert client.refused_runs("sim0") == ()
        crash(farm, client, times=2)
        eventually(lambda: [state.refused for state in client.states()] == [1])
        (run,) = client.refused_runs("sim0")
        assert (run.artifact, run.entry, run.crashes) == (JOB.artifact, "crash", 2)
        assert (run.status, run.why) == ("run_crash", "signal 11")

    tracker.stop()
    tracker = farm.tracker(listen=tracker.address, limits=LIMITS, state=tmp_path / "state")
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        eventually(lambda: [state.refused for state in client.states()] == [1])
        assert not forgiven(farm)
        client.readmit("sim0")
        assert client.refused_runs("sim0") == ()
        eventually(lambda: forgiven(farm))
        crash(farm, client, times=1)
        assert client.refused_runs("sim0") == ()


def test_a_readmission_outlives_the_tracker_that_was_told(farm: Farm, tmp_path: Path) -> None:
    """It ends before the device beats, which it does every 12 s or less often."""
    seldom = TableLimits(device_ttl_seconds=60.0)
    tracker = farm.tracker(limits=seldom, state=tmp_path / "state")
    device = farm.device(tracker=tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        crash(farm, client, times=2)
        client.readmit("sim0")
    tracker.stop()
    device.stop()
    assert not forgiven(farm)
    tracker = farm.tracker(limits=LIMITS, state=tmp_path / "state")
    farm.device(tracker=tracker)
    eventually(lambda: forgiven(farm))


def test_an_older_tracker_is_told_nothing_of_them(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[Heartbeat] = []
    heartbeat = LeaseTable.heartbeat

    def before(table: LeaseTable, call: Heartbeat) -> HeartbeatReply:
        beats.append(call)
        reply = heartbeat(table, call)
        return HeartbeatReply(known=reply.known, quarantined=reply.quarantined)

    monkeypatch.setattr(LeaseTable, "heartbeat", before)
    tracker = farm.tracker(limits=LIMITS)
    farm.device(tracker=tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        crash(farm, client, times=2)
        seen = len(beats)
        eventually(lambda: len(beats) > seen + 3)
    assert all(call.refused is None for call in beats)
