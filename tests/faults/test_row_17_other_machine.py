"""Row 17: an artifact for another processor is VERIFY_REJECTED by its header, and never loaded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS, FakeRunner, Farm
from kit.objects.foreign import MACHINES, linked
from tilefarm.digest import Digest
from tilefarm.measurement import RunFailure, RunJob, Status

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path) as running:
        yield running


@pytest.mark.parametrize(
    ("processor", "reason"),
    [
        ("aarch64", "made for machine 183, but this device is X86_64 (62)"),
        ("armv7", "not a 64-bit little-endian ELF file"),
    ],
)
def test_what_a_cross_compiler_links_is_refused(
    farm: Farm, tmp_path: Path, processor: str, reason: str
) -> None:
    machine = MACHINES[processor]
    if shutil.which(machine.compiler) is None:
        pytest.skip(f"no {machine.compiler}")
    code, runner = linked(machine, tmp_path), FakeRunner()
    job = RunJob(artifact=Digest.of(code), entry="kernel", buffers=())
    tracker = farm.tracker()
    farm.device(tracker=tracker, runner=runner)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
    assert lease is not None
    with DeviceClient(lease, CREDENTIALS) as device:
        device.ensure({job.artifact: code})
        assert device.load_module(job.artifact) == reason
        failure = device.run(job, request_id="r1")
    assert isinstance(failure, RunFailure)
    assert (failure.status, failure.why) == (Status.VERIFY_REJECTED, reason)
    assert job.artifact not in [seen.artifact for seen in runner.seen]
