"""The whole way to a real child: processes, gRPC, ELF check, sandboxed runner, VTA library."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kit.built import needs_c_kernels
from kit.farm.computing import computing
from kit.farm.in_process import CREDENTIALS, eventually
from kit.kernels.c_kernels import X, Y, blobs, job
from tilefarm.errors import DeviceLostError
from tilefarm.measurement import Measurement, RunFailure, Status
from tilefarm.target import TARGETS

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient

from .processes import DEVICE, TRACKER, process

pytestmark = needs_c_kernels


@dataclass(frozen=True, slots=True)
class Place:
    """A leased device in a process of its own."""

    device: subprocess.Popen[str]
    tracker: TrackerClient
    client: DeviceClient


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with (
        process(TRACKER) as (_, address),
        process(DEVICE, address, str(tmp_path)) as (device, _),
        TrackerClient(address, CREDENTIALS) as tracker,
    ):
        lease = tracker.acquire(TARGETS["sim"].digest, wait_seconds=60.0, owner="test")
        assert lease is not None
        with DeviceClient(lease, CREDENTIALS) as client:
            client.ensure(blobs())
            yield Place(device, tracker, client)


def failed(outcome: Measurement | RunFailure) -> RunFailure:
    assert isinstance(outcome, RunFailure)
    return outcome


def test_kernels_end_as_they_must_and_the_device_lives_on(place: Place) -> None:
    run = place.client.run
    good = run(job("increment"), request_id="r1")
    assert isinstance(good, Measurement)
    assert dict(good.outputs) == {"y": Y}
    assert good.device == "sim0"
    assert len(good.seconds) == 3
    assert len(good.sample_cycles) == 2

    crash = failed(run(job("crash"), request_id="r2"))
    assert (crash.status, crash.signal) == (Status.RUN_CRASH, signal.SIGSEGV)

    loop = failed(run(job("loop", timeout_seconds=0.3), request_id="r3"))
    assert loop.status is Status.RUN_TIMEOUT

    wrong = failed(run(job("increment", expected=X), request_id="r4"))
    assert wrong.status is Status.WRONG_RESULT
    absent = failed(run(job("absent"), request_id="r5"))
    assert absent.status is Status.LOAD_ERROR
    again = run(job("increment"), request_id="r6")
    assert isinstance(again, Measurement)
    assert again.counters == good.counters


def test_a_device_that_is_killed_in_the_middle_of_a_run_is_lost_at_once(place: Place) -> None:
    """Long before the kernel's own time is over."""
    ended = threading.Event()

    def run() -> None:
        with pytest.raises(DeviceLostError, match="sim0"):
            place.client.run(job("loop", timeout_seconds=120.0), request_id="r1")
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    eventually(lambda: any(map(computing, children(place.device.pid))))
    runners = children(place.device.pid)
    place.device.kill()
    assert ended.wait(60.0)
    thread.join()
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in runners))


@pytest.mark.slow
def test_a_device_that_freezes_is_lost_by_its_keepalive(place: Place) -> None:
    place.device.send_signal(signal.SIGSTOP)
    begin = time.monotonic()
    with pytest.raises(DeviceLostError, match="sim0"):
        place.client.run(job("loop", timeout_seconds=300.0), request_id="r1")
    assert time.monotonic() - begin < 100.0


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    found: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, listing.read_text().split())
    return found
