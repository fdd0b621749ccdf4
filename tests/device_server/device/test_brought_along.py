"""Blobs that come with a run: one call for most candidates, and what becomes of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from kit.farm.in_process import CREDENTIALS, FakeRunner, Farm, calling
from kit.objects.elves import Elf
from tilefarm.digest import Digest
from tilefarm.errors import (
    AccessError,
    CapacityError,
    CorruptBlobError,
    LeaseError,
    MissingBlobError,
)
from tilefarm.lease import Lease
from tilefarm.measurement import BufferSpec, Measurement, Role, RunJob
from tilefarm.rpc import device_calls, methods
from tilefarm.rpc.caller import CHUNK_NBYTES, Caller
from tilefarm.rpc.version import Version

from device_server.device import served_device
from device_server.device.blob_store import StoreLimits
from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient

CODE = Elf().build()
SMALL = b"small" * 20
LARGE = bytes(range(256)) * (CHUNK_NBYTES // 256 + 1)
KEY = b"k" * 32


def job(data: bytes = SMALL, code: bytes = CODE) -> RunJob:
    x = BufferSpec(name="x", role=Role.INPUT, nbytes=len(data), content=Digest.of(data))
    y = BufferSpec(name="y", role=Role.OUTPUT, nbytes=len(data), fetch=True)
    return RunJob(artifact=Digest.of(code), entry="echo", buffers=(x, y), timeout_seconds=60.0)


def blobs(*contents: bytes) -> dict[Digest, bytes]:
    return {Digest.of(content): content for content in (CODE, *contents)}


def leased(farm: Farm) -> Lease:
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
    assert lease is not None
    return lease


@pytest.fixture
def client(farm: Farm) -> Iterator[DeviceClient]:
    with DeviceClient(leased(farm), CREDENTIALS) as made:
        made.send_ahead({})  # It has asked whom it speaks to.
        yield made


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What clients call from now on, with how many blobs; reading outputs is left out."""
    seen: list[str] = []
    for way in ("unary", "upload"):
        real = getattr(Caller, way)

        def call(caller: Caller, method: Any, said: Any, *, real: Any = real, **more: Any) -> Any:
            seen.append(f"Run {len(said.blobs)}" if method is methods.RUN else method.name)
            return real(caller, method, said, **more)

        monkeypatch.setattr(Caller, way, call)
    return seen


def ran(client: DeviceClient, data: bytes, request_id: str, **given: dict[Digest, bytes]) -> bool:
    result = client.run(job(data), request_id=request_id, **given)
    return isinstance(result, Measurement) and dict(result.outputs) == {"y": data}


def test_small_blobs_come_with_the_run_and_are_kept(
    farm: Farm, client: DeviceClient, called: list[str]
) -> None:
    assert ran(client, SMALL, "r1", blobs=blobs(SMALL))
    assert called == ["Run 2"]
    kept = {path.name for path in (farm.folder / "sim0" / "blobs").iterdir()}
    assert kept == {Digest.of(SMALL).hex}, "data stay on the disk, code in memory"
    with DeviceClient(client.lease, CREDENTIALS) as another:
        assert ran(another, SMALL, "r2")


def test_what_is_known_to_be_there_is_not_sent_again(
    client: DeviceClient, called: list[str]
) -> None:
    other = b"other" * 20
    assert ran(client, SMALL, "r1", blobs=blobs(SMALL))
    assert ran(client, SMALL, "r2", blobs=blobs(SMALL))
    assert ran(client, other, "r3", blobs=blobs(other))
    assert called == ["Run 2", "Run 0", "Run 1"]


def test_what_is_too_much_goes_ahead(client: DeviceClient, called: list[str]) -> None:
    assert ran(client, LARGE, "r1", blobs=blobs(LARGE))
    assert called == ["FindMissing", "Write", "Run 0"]
    assert ran(client, LARGE, "r2", blobs=blobs(LARGE))
    assert called[3:] == ["Run 0"]


def test_what_a_device_has_lost_since_is_sent_again(
    farm: Farm, client: DeviceClient, called: list[str]
) -> None:
    assert ran(client, SMALL, "r1", blobs=blobs(SMALL))
    lost = farm.folder / "sim0" / "blobs" / Digest.of(SMALL).hex
    lost.chmod(0o600)
    lost.write_bytes(b"noise")
    assert ran(client, SMALL, "r2", blobs=blobs(SMALL))
    assert called == ["Run 2", "Run 0", "Run 2"]


def test_what_nobody_brings_is_missing(client: DeviceClient, called: list[str]) -> None:
    for given, lacks in (({}, CODE), (blobs(), SMALL)):
        with pytest.raises(MissingBlobError, match=Digest.of(lacks).short):
            client.run(job(), request_id="r1", blobs=given)
    assert called == ["Run 0", "Run 1"]
    assert ran(client, SMALL, "r1", blobs=blobs(SMALL))


def test_the_same_request_is_answered_and_not_run_again(farm: Farm) -> None:
    tracker, runner = farm.tracker(), FakeRunner()
    farm.device(tracker=tracker, runner=runner)
    with TrackerClient(tracker.address, CREDENTIALS) as told:
        lease = told.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
    assert lease is not None
    for _ in range(2):  # As after a reply that was lost: another client knows of no blob.
        with DeviceClient(lease, CREDENTIALS) as client:
            assert ran(client, SMALL, "r1", blobs=blobs(SMALL))
    assert len(runner.seen) == 1


def run_with(client: DeviceClient, *contents: bytes, lease: Lease | None = None) -> None:
    """A call that brings whatever it likes."""
    call = device_calls.Run(
        claim=device_calls.Claim.of(lease or client.lease),
        request_id="r1",
        job=job(),
        blobs=contents,
    )
    with calling(client.lease.device.address) as caller:
        caller.unary(methods.RUN, call, timeout_seconds=60.0)


def test_a_blob_that_the_job_does_not_name_is_damaged_and_not_kept(
    farm: Farm, client: DeviceClient
) -> None:
    with pytest.raises(CorruptBlobError, match="brings a blob that it does not name, of 3 bytes"):
        run_with(client, b"abc")
    assert not list((farm.folder / "sim0" / "blobs").iterdir())
    assert not list((farm.folder / "sim0" / "incoming").iterdir())


def test_nothing_is_kept_of_who_has_no_lease(farm: Farm, client: DeviceClient) -> None:
    stale = replace(client.lease, ticket=b"made up")
    with pytest.raises(LeaseError):
        run_with(client, CODE, SMALL, lease=stale)
    assert not list((farm.folder / "sim0" / "blobs").iterdir())


def test_nothing_is_kept_of_an_artifact_that_is_not_signed(farm: Farm) -> None:
    farm.credentials = replace(CREDENTIALS, signing_key=KEY)
    with (
        DeviceClient(leased(farm), CREDENTIALS) as client,
        pytest.raises(AccessError, match="is not signed"),
    ):
        client.run(job(), request_id="r1", blobs=blobs(SMALL))
    assert not list((farm.folder / "sim0" / "blobs").iterdir())


def test_a_store_that_is_full_says_so(farm: Farm) -> None:
    tracker = farm.tracker()
    limits = StoreLimits(total_nbytes=len(CODE) + 10)
    farm.device(tracker=tracker, settings=lambda s: replace(s, limits=limits))
    with TrackerClient(tracker.address, CREDENTIALS) as told:
        lease = told.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
    assert lease is not None
    with DeviceClient(lease, CREDENTIALS) as client, pytest.raises(CapacityError):
        client.run(job(LARGE[:1000]), request_id="r1", blobs=blobs(LARGE[:1000]))
    assert not list((farm.folder / "sim0" / "incoming").iterdir())


def test_a_device_of_the_version_before_gets_uploads(
    farm: Farm, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_device, "PROTOCOL", Version(2, 1))
    with DeviceClient(leased(farm), CREDENTIALS) as client:
        called.clear()
        assert ran(client, SMALL, "r1", blobs=blobs(SMALL))
        assert ran(client, SMALL, "r2", blobs=blobs(SMALL))
    assert called == ["GetCapabilities", "FindMissing", "Write", "Run 0", "Run 0"]
