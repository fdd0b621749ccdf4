"""What takes long to hash, to look at or to write: the device answers others meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS
from kit.farm.watched_device import CODE, Bed
from tilefarm.digest import Digest
from tilefarm.errors import LeaseError
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob

from device_server.device import elf
from device_server.device.blob_store import BlobStore
from device_server.device.client import DeviceClient
from device_server.device.offload import QUICK_NBYTES

LARGE = bytes(QUICK_NBYTES + 1)
JOB = RunJob(
    artifact=Digest.of(CODE),
    entry="echo",
    buffers=(
        BufferSpec(name="x", role=Role.INPUT, nbytes=len(LARGE), content=Digest.of(LARGE)),
        BufferSpec(name="y", role=Role.OUTPUT, nbytes=len(LARGE), fetch=True),
    ),
)


class Gate:
    """Holds up one piece of work until a test lets it go on."""

    def __init__(self) -> None:
        self._begun, self._goes_on = threading.Event(), threading.Event()

    def __call__(self) -> None:
        """Whoever comes here has begun, and waits."""
        self._begun.set()
        assert self._goes_on.wait(30.0)

    @contextmanager
    def stuck(self) -> Iterator[None]:
        """Within, it has begun, and does not go on."""
        try:
            assert self._begun.wait(30.0)
            yield
        finally:
            self._goes_on.set()


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def disk(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Takes a large output when a test lets it go on."""
    put = BlobStore.put

    def slow(store: BlobStore, content: bytes, digest: Digest | None = None) -> Digest:
        if len(content) == len(LARGE):
            gate()
        return put(store, content, digest)

    monkeypatch.setattr(BlobStore, "put", slow)
    return gate


def answers(device: DeviceClient) -> bool:
    """Whether the device's event loop goes on: its heartbeats come from there, too."""
    with DeviceClient(device.lease, CREDENTIALS) as other:
        return other.capabilities().name == "sim0"


@contextmanager
def running(device: DeviceClient) -> Iterator[Future[Measurement | RunFailure]]:
    device.ensure({Digest.of(LARGE): LARGE})
    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(lambda: device.run(JOB, request_id="r"))


def test_a_device_answers_while_it_keeps_what_a_run_gave(bed: Bed, disk: Gate) -> None:
    with bed.device() as device, running(device) as run:
        with disk.stuck():
            assert answers(device)
            assert not run.done()
        outcome = run.result()
    assert isinstance(outcome, Measurement)
    assert outcome.outputs == (("y", LARGE),)


def test_nobody_gets_what_is_kept_when_its_lease_has_ended(bed: Bed, disk: Gate) -> None:
    with bed.device() as device, running(device) as run:
        with disk.stuck():
            with bed.asked() as client:
                client.release(device.lease)
            lease = bed.lease()
            assert lease is not None
            another = LARGE + b"of another lease"
            with DeviceClient(lease, CREDENTIALS) as next_one:
                next_one.ensure({Digest.of(another): another})
        with pytest.raises(LeaseError):
            run.result()


def test_a_device_answers_while_it_reads_what_an_earlier_life_has_left(
    bed: Bed, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bed.device() as device:
        device.ensure({Digest.of(LARGE): LARGE})
    bed.restart()
    of_file = Digest.of_file

    def slow(path: Path) -> Digest:
        if path.stat().st_size == len(LARGE):
            gate()
        return of_file(path)

    monkeypatch.setattr(Digest, "of_file", slow)
    with bed.device() as device, running(device) as run:
        with gate.stuck():
            assert answers(device)
            assert not run.done()
        assert isinstance(run.result(), Measurement)


def test_a_device_answers_while_it_looks_at_a_large_artifact(
    bed: Bed, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(code: bytes, machine: elf.Machine) -> str | None:
        gate()
        return "too large to be looked at in a test"

    monkeypatch.setattr(elf, "rejection", slow)
    with bed.device() as device, ThreadPoolExecutor(1) as thread:
        device.ensure({Digest.of(LARGE): LARGE})
        verdict = thread.submit(lambda: device.load_module(Digest.of(LARGE)))
        with gate.stuck():
            assert answers(device)
            assert not verdict.done()
        assert verdict.result() == "too large to be looked at in a test"
