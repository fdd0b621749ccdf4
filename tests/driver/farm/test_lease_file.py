"""Leases in a file: what a killed run held is given back by the one that goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kit.farm.in_process import CREDENTIALS, Farm
from tilefarm.errors import NoDeviceError
from tilefarm.lease import Lease
from tilefarm.target import TARGETS

from device_server.tracker.client import TrackerClient
from driver.farm.farms import RemoteFarm
from driver.farm.lease_file import HeldLeases
from driver.farm.leases import Leases


def leases(address: str, file: Path) -> Leases:
    farm = RemoteFarm(address, CREDENTIALS)
    return Leases(farm, TARGETS["sim"], owner="test", held=HeldLeases(file))


def test_who_goes_on_has_the_device_at_once(tmp_path: Path) -> None:
    file = tmp_path / "leases.json"
    with Farm(tmp_path) as farm:
        tracker = farm.tracker()
        farm.device(tracker=tracker)
        killed = leases(tracker.address, file)
        first = killed.acquire(60.0)
        left = file.read_bytes()
        again = leases(tracker.address, file)
        second = again.acquire(60.0)
        assert second.fence > first.fence
        assert left != file.read_bytes()
        assert killed.void(first), "its lease is over"
        again.close()
        killed.close()
    assert HeldLeases(file).left() == ()


def test_who_was_killed_before_it_heard_of_its_lease_keeps_no_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "leases.json"
    seen: list[bytes] = []
    acquire = TrackerClient.acquire

    def watched(*args: Any, **words: Any) -> Lease | None:
        lease = acquire(*args, **words)
        seen.append(file.read_bytes())
        return lease

    with Farm(tmp_path) as farm:
        tracker = farm.tracker()
        farm.device(tracker=tracker)
        killed = leases(tracker.address, file)
        with monkeypatch.context() as patch:
            patch.setattr(TrackerClient, "acquire", watched)
            first = killed.acquire(60.0)
        file.write_bytes(seen[0])
        again = leases(tracker.address, file)
        assert again.acquire(60.0).fence > first.fence
        again.close()
        killed.close()


def test_who_asked_in_vain_keeps_nothing(tmp_path: Path) -> None:
    file = tmp_path / "leases.json"
    with Farm(tmp_path) as farm:
        tracker = farm.tracker()
        alone = leases(tracker.address, file)
        with pytest.raises(NoDeviceError):
            alone.acquire(0.1)
        alone.close()
    assert HeldLeases(file).left() == ()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"a": 1}', b"\xff", b'["a"'])
def test_a_file_that_says_nothing_is_no_obstacle(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "leases.json"
    file.write_bytes(content)
    assert HeldLeases(file).left() == ()


def test_a_file_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    HeldLeases(tmp_path / "nosuch" / "leases.json").keep(["lease-1"])
    assert HeldLeases(None).left() == ()
