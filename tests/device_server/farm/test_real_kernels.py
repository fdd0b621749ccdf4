"""The whole way to a real child: processes, gRPC, ELF check, sandboxed runner, VTA library."""

from __future__ import annotations

import platform
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kit.farm import TOKEN, eventually
from kit.processes import DEVICE, TRACKER, process
from tilefarm.digest import Digest
from tilefarm.errors import DeviceLostError, InfraError
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob, Status
from tilefarm.target import TARGETS

from device_server.client import DeviceClient, TrackerClient
from device_server.native import find_executable, find_library

SOURCE = """
    #include <stdint.h>
    void* VTATLSCommandHandle(void);
    void* VTABufferCPUPtr(void*, void*);
    void VTASynchronize(void*, uint32_t);

    int32_t increment(void* const* buffers, const int64_t* offsets) {
      void* commands = VTATLSCommandHandle();
      const uint8_t* x = (const uint8_t*)VTABufferCPUPtr(commands, buffers[0]) + offsets[0];
      uint8_t* y = (uint8_t*)VTABufferCPUPtr(commands, buffers[1]) + offsets[1];
      for (int i = 0; i < 1024; ++i) y[i] = (uint8_t)(x[i] + 1);
      VTASynchronize(commands, 1u << 31);
      return 0;
    }
    int32_t crash(void* const* buffers, const int64_t* offsets) {
      *(volatile int*)(offsets[0] + 16) = (int)(intptr_t)buffers;
      return 0;
    }
    int32_t loop(void* const* buffers, const int64_t* offsets) {
      for (volatile int forever = 1; forever;) {}
      return buffers && offsets;
    }
"""
X = bytes(range(256)) * 8
Y = bytes((byte + 1) % 256 for byte in X)


def unbuilt() -> str:
    """Why no real kernel can run here; empty when one can."""
    if platform.machine() != "x86_64" or shutil.which("cc") is None:
        return "needs a C compiler for x86-64"
    try:
        find_library(), find_executable()
    except InfraError as error:
        return error.what
    return ""


pytestmark = pytest.mark.skipif(bool(unbuilt()), reason=unbuilt() or "built")


@dataclass(frozen=True, slots=True)
class Place:
    """A leased device in a process of its own."""

    device: subprocess.Popen[str]
    tracker: TrackerClient
    client: DeviceClient


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "k.c").write_text(SOURCE)
    command = ["cc", "-O1", "-shared", "-fPIC", "-nostdlib", "-ffreestanding", "-o"]
    subprocess.run([*command, str(folder / "k.so"), str(folder / "k.c")], check=True)
    return (folder / "k.so").read_bytes()


@pytest.fixture
def place(tmp_path: Path, code: bytes) -> Iterator[Place]:
    with (
        process(TRACKER) as (_, address),
        process(DEVICE, address, str(tmp_path)) as (device, _),
        TrackerClient(address, TOKEN) as tracker,
    ):
        lease = tracker.acquire(TARGETS["sim"].digest, wait_seconds=10.0, owner="test")
        assert lease is not None
        with DeviceClient(lease, TOKEN) as client:
            client.ensure({Digest.of(code): code, Digest.of(X): X})
            yield Place(device, tracker, client)


def job(code: bytes, entry: str, *, expected: bytes = Y, timeout_seconds: float = 5.0) -> RunJob:
    return RunJob(
        artifact=Digest.of(code),
        entry=entry,
        buffers=(
            BufferSpec(name="x", role=Role.INPUT, nbytes=1024, content=Digest.of(X)),
            BufferSpec(
                name="y", role=Role.OUTPUT, nbytes=1024, expected=Digest.of(expected), fetch=True
            ),
        ),
        samples=2,
        repeats=3,
        timeout_seconds=timeout_seconds,
    )


def failed(outcome: Measurement | RunFailure) -> RunFailure:
    assert isinstance(outcome, RunFailure)
    return outcome


def test_kernels_end_as_they_must_and_the_device_lives_on(place: Place, code: bytes) -> None:
    run = place.client.run
    good = run(job(code, "increment"), request_id="r1")
    assert isinstance(good, Measurement)
    assert dict(good.outputs) == {"y": Y}
    assert good.device == "sim0"
    assert len(good.seconds) == 3
    assert len(good.sample_cycles) == 2

    crash = failed(run(job(code, "crash"), request_id="r2"))
    assert (crash.status, crash.signal) == (Status.RUN_CRASH, signal.SIGSEGV)

    begin = time.monotonic()
    loop = failed(run(job(code, "loop", timeout_seconds=0.3), request_id="r3"))
    assert loop.status is Status.RUN_TIMEOUT
    assert time.monotonic() - begin < 3.0

    wrong = failed(run(job(code, "increment", expected=X), request_id="r4"))
    assert wrong.status is Status.WRONG_RESULT
    absent = failed(run(job(code, "absent"), request_id="r5"))
    assert absent.status is Status.LOAD_ERROR
    again = run(job(code, "increment"), request_id="r6")
    assert isinstance(again, Measurement)
    assert again.counters == good.counters


def test_a_device_that_is_killed_in_the_middle_of_a_run_is_lost_at_once(
    place: Place, code: bytes
) -> None:
    ended: list[float] = []

    def run() -> None:
        with pytest.raises(DeviceLostError, match="sim0"):
            place.client.run(job(code, "loop", timeout_seconds=8.0), request_id="r1")
        ended.append(time.monotonic())

    thread = threading.Thread(target=run)
    thread.start()
    eventually(lambda: bool(children(place.device.pid)))
    runners = children(place.device.pid)
    time.sleep(0.1)
    place.device.kill()
    killed = time.monotonic()
    thread.join(10)
    assert ended
    assert ended[0] - killed < 1.0
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in runners))


@pytest.mark.slow
def test_a_device_that_freezes_is_lost_by_its_keepalive(place: Place, code: bytes) -> None:
    place.device.send_signal(signal.SIGSTOP)
    begin = time.monotonic()
    with pytest.raises(DeviceLostError, match="sim0"):
        place.client.run(job(code, "loop", timeout_seconds=30.0), request_id="r1")
    assert time.monotonic() - begin < 20.0


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    found: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, listing.read_text().split())
    return found
