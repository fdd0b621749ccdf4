"""Outputs that take long to hash and to write: the device answers others meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from kit.farm.in_process import CREDENTIALS
from kit.farm.watched_device import CODE, Bed
from tilefarm.digest import Digest
from tilefarm.errors import LeaseError
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob

from device_server.device.client import DeviceClient
from device_server.device.store import BlobStore
from device_server.device.tenant_blobs import QUICK_NBYTES

LARGE = bytes(QUICK_NBYTES + 1)
JOB = RunJob(
    artifact=Digest.of(CODE),
    entry="echo",
    buffers=(
        BufferSpec(name="x", role=Role.INPUT, nbytes=len(LARGE), content=Digest.of(LARGE)),
        BufferSpec(name="y", role=Role.OUTPUT, nbytes=len(LARGE), fetch=True),
    ),
)


class SlowDisk:
    """Takes a large output when a test lets it go on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._begun, self._goes_on = threading.Event(), threading.Event()
        put = BlobStore.put

        def slow(store: BlobStore, content: bytes, digest: Digest | None = None) -> Digest:
            if len(content) == len(LARGE):
                self._begun.set()
                assert self._goes_on.wait(30.0)
            return put(store, content, digest)

        patch.setattr(BlobStore, "put", slow)

    @contextmanager
    def stuck(self) -> Iterator[None]:
        """Within, it has begun, and does not go on."""
        try:
            assert self._begun.wait(30.0)
            yield
        finally:
            self._goes_on.set()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    return SlowDisk(monkeypatch)


@contextmanager
def running(device: DeviceClient) -> Iterator[Future[Measurement | RunFailure]]:
    device.ensure({Digest.of(LARGE): LARGE})
    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(lambda: device.run(JOB, request_id="r"))


def test_a_device_answers_while_it_keeps_what_a_run_gave(bed: Bed, disk: SlowDisk) -> None:
    with bed.device() as device, running(device) as run:
        with disk.stuck(), DeviceClient(device.lease, CREDENTIALS) as other:
            assert other.capabilities().name == "sim0"
            assert not run.done()
        outcome = run.result()
    assert isinstance(outcome, Measurement)
    assert outcome.outputs == (("y", LARGE),)


def test_nobody_gets_what_is_kept_when_its_lease_has_ended(bed: Bed, disk: SlowDisk) -> None:
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
