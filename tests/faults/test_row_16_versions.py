"""Row 16: other versions are refused with both named and the fix; the one before is understood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit.farm.in_process import CREDENTIALS, Farm, Server
from tilefarm.digest import Digest
from tilefarm.errors import FarmFault, LeaseError, VersionError
from tilefarm.lease import Lease
from tilefarm.rpc import caller as rpc
from tilefarm.rpc.serving import Route
from tilefarm.rpc.version import PROTOCOL, Version, announcement

from device_server.device import served_device
from device_server.device.client import DeviceClient
from device_server.device.servicer import DeviceServicer
from device_server.tracker.client import TrackerClient

BLOB = bytes(rpc.CHUNK_NBYTES + 1)
BLOBS = {Digest.of(BLOB): BLOB}
OTHERS = [Version(PROTOCOL.major + 1, 0), Version(PROTOCOL.major - 1, 9)]


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path) as running:
        yield running


@pytest.fixture
def tracker(farm: Farm) -> Server:
    return farm.tracker()


def leased(farm: Farm, tracker: Server) -> Lease:
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
    assert lease is not None
    return lease


def speak(patch: pytest.MonkeyPatch, *headers: tuple[str, str]) -> None:
    """Clients that are made from now on announce something else."""
    patch.setattr(rpc, "announcement", lambda: headers)


def says_both(error: FarmFault | None, theirs: Version) -> bool:
    assert isinstance(error, VersionError)
    older = "the other side" if theirs < PROTOCOL else "this side"
    assert f"{older} has the older one" in error.hint
    assert "install the same version of tilefarm on both sides" in error.hint
    return error.what == f"the caller speaks protocol {theirs}, not {PROTOCOL}"


@pytest.mark.parametrize("theirs", OTHERS, ids=str)
def test_a_tracker_refuses_a_client(
    tracker: Server, monkeypatch: pytest.MonkeyPatch, theirs: Version
) -> None:
    speak(monkeypatch, *announcement(theirs))
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        with pytest.raises(VersionError) as refused:
            client.devices()
        assert says_both(refused.value, theirs)
        with pytest.raises(VersionError):  # at once, whatever the patience
            client.acquire(Digest.of(b""), wait_seconds=60.0, owner="test")


@pytest.mark.parametrize("theirs", OTHERS, ids=str)
def test_a_tracker_refuses_a_device_which_then_gives_up(
    farm: Farm, tracker: Server, monkeypatch: pytest.MonkeyPatch, theirs: Version
) -> None:
    speak(monkeypatch, *announcement(theirs))
    error = farm.device(tracker=tracker).ended_with(60)
    assert isinstance(error, VersionError)
    assert says_both(error, theirs)


@pytest.mark.parametrize("theirs", OTHERS, ids=str)
def test_a_device_refuses_a_client(
    farm: Farm, tracker: Server, monkeypatch: pytest.MonkeyPatch, theirs: Version
) -> None:
    farm.device(tracker=tracker)
    lease = leased(farm, tracker)
    speak(monkeypatch, *announcement(theirs))
    with DeviceClient(lease, CREDENTIALS) as client, pytest.raises(VersionError) as refused:
        client.ensure(BLOBS)
    assert says_both(refused.value, theirs)


@pytest.mark.parametrize("theirs", OTHERS, ids=str)
def test_a_client_refuses_a_device_that_would_not(
    farm: Farm, tracker: Server, monkeypatch: pytest.MonkeyPatch, theirs: Version
) -> None:
    monkeypatch.setattr(served_device, "PROTOCOL", theirs)
    farm.device(tracker=tracker)
    with (
        DeviceClient(leased(farm, tracker), CREDENTIALS) as client,
        pytest.raises(VersionError, match=f"device sim0 speaks protocol {theirs}, not {PROTOCOL}"),
    ):
        client.ensure(BLOBS)


@pytest.mark.parametrize(
    "headers",
    [(), *(announcement(Version(2, minor)) for minor in (0, 1, 2, 3, 4, 99))],
    ids=["2.0 names none", "2.0", "2.1", "2.2", "2.3", "2.4", "2.99"],
)
def test_the_versions_before_and_after_are_understood(
    farm: Farm,
    tracker: Server,
    monkeypatch: pytest.MonkeyPatch,
    headers: tuple[tuple[str, str], ...],
) -> None:
    speak(monkeypatch, *headers)
    farm.device(tracker=tracker)
    with DeviceClient(leased(farm, tracker), CREDENTIALS) as client:
        assert client.ensure(BLOBS) == len(BLOB)


def test_a_device_of_the_version_before_is_not_asked_what_it_does_not_know(
    farm: Farm, tracker: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_device, "PROTOCOL", Version(2, 0))
    routes = DeviceServicer.routes

    def before(servicer: DeviceServicer) -> list[Route[Any, Any]]:
        return [r for r in routes(servicer) if r.method.name not in ("QueryWrite", "Check")]

    monkeypatch.setattr(DeviceServicer, "routes", before)
    farm.device(tracker=tracker)
    with DeviceClient(leased(farm, tracker), CREDENTIALS) as client:
        assert client.ensure(BLOBS) == len(BLOB)
        client.confirm()


def test_what_is_no_version_is_refused(tracker: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    ((key, _),) = announcement()
    for text in ("two", "2", "2.1.0", "9" * 50):
        speak(monkeypatch, (key, text))
        with (
            TrackerClient(tracker.address, CREDENTIALS) as client,
            pytest.raises(FarmFault, match=r"is not MAJOR\.MINOR"),
        ):
            client.devices()


def test_a_device_of_another_configuration_is_told_with_both(farm: Farm, tracker: Server) -> None:
    farm.device(tracker=tracker)
    lease = leased(farm, tracker)
    other = replace(lease, device=replace(lease.device, target=Digest.of(b"another")))
    with (
        DeviceClient(other, CREDENTIALS) as client,
        pytest.raises(LeaseError) as refused,
    ):
        client.ensure(BLOBS)
    assert lease.device.target.short in refused.value.what
    assert other.device.target.short in refused.value.what
    assert refused.value.hint
