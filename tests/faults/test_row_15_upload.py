"""Row 15: an upload that is cut short goes on where it ended; one that is damaged is sent again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS, Farm, eventually
from kit.farm.proxy import Proxy
from tilefarm.digest import Digest
from tilefarm.errors import CorruptBlobError, DeviceSilentError, FarmFault
from tilefarm.lease import Lease

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient

from .fault_rows import Stopwatch

SMALL = b"a blob of one message"
LARGE = random.Random(15).randbytes(3 << 20)
BLOBS = {Digest.of(blob): blob for blob in (LARGE, SMALL)}


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path) as running:
        yield running


@pytest.fixture
def scene(farm: Farm) -> Iterator[tuple[Lease, Proxy]]:
    """A lease of a device behind a proxy."""
    tracker = farm.tracker()
    device = farm.device(tracker=tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
    assert lease is not None
    with Proxy(device.address) as proxy:
        yield replace(lease, device=replace(lease.device, address=proxy.address)), proxy


def test_an_upload_that_breaks_off_goes_on_where_it_ended(
    farm: Farm, scene: tuple[Lease, Proxy], stopwatch: Stopwatch
) -> None:
    lease, proxy = scene
    incoming = farm.folder / "sim0" / "incoming"

    def arrived() -> int:
        return sum(path.stat().st_size for path in incoming.iterdir())

    with DeviceClient(lease, CREDENTIALS) as client, ThreadPoolExecutor() as beside:
        proxy.delay(0.05)  # for each of the 48 pieces of the upload
        upload = beside.submit(client.ensure, BLOBS)
        eventually(lambda: arrived() >= 1 << 20)
        proxy.reset()
        with pytest.raises(DeviceSilentError):
            upload.result(30)
    proxy.heal()
    with stopwatch.running(), DeviceClient(lease, CREDENTIALS) as client:
        there = arrived()
        assert client.ensure(BLOBS) == len(LARGE) + len(SMALL) - there
        assert client.ensure(BLOBS) == 0
        assert [client.read(digest) for digest in BLOBS] == list(BLOBS.values())
    assert not list(incoming.iterdir())


@pytest.mark.parametrize("after_nbytes", [300_000, 1 << 20, 2_500_000])
def test_a_damaged_upload_is_told_and_leaves_nothing_of_the_blob(
    farm: Farm, scene: tuple[Lease, Proxy], stopwatch: Stopwatch, after_nbytes: int
) -> None:
    lease, proxy = scene
    with DeviceClient(lease, CREDENTIALS) as client:
        client.ensure({Digest.of(SMALL): SMALL})
        proxy.flip("up", after_nbytes)
        # A bit that turns over in what carries the bytes is another fault, and as well noticed.
        with pytest.raises(FarmFault):
            client.ensure(BLOBS)
    blobs = farm.folder / "sim0" / "blobs"
    assert [path.name for path in blobs.iterdir()] == [Digest.of(SMALL).hex]
    with stopwatch.running(), DeviceClient(lease, CREDENTIALS) as client:
        try:
            client.ensure(BLOBS)
        except CorruptBlobError:  # Damaged bytes had arrived before the line broke: once more.
            client.ensure(BLOBS)
        assert client.read(Digest.of(LARGE)) == LARGE
