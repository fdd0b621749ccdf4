"""A tracker's file: what was saved is there again, whatever happened in between."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from kit.counting_ids import CountingIds
from kit.farm.full_disk import full_disk
from kit.manual_clock import ManualClock
from tilefarm.digest import Digest
from tilefarm.errors import SettingsError
from tilefarm.lease import DeviceInfo
from tilefarm.rpc.tracker_calls import Acquire, Heartbeat, Register

from device_server.tracker.leases import LeaseTable
from device_server.tracker.state_file import TrackerState

TARGET = Digest.of(b"target")


def device(name: str) -> Register:
    info = DeviceInfo(name=name, address="a:1", target=TARGET, runtime="r", sandbox="s", epoch="e")
    return Register(device=info, secret=b"s")


def table_of(*names: str) -> LeaseTable:
    table = LeaseTable(ManualClock(), CountingIds())
    for name in names:
        table.register(device(name))
    return table


def silent(event: str, **fields: object) -> None:
    """Says nothing."""


def test_changes_add_up_to_the_state(tmp_path: Path) -> None:
    path = tmp_path / "state"
    table = table_of("a", "b", "c")
    file = TrackerState(path, silent)
    file.save(table.changes())
    first = table.acquire(Acquire(request_id="r", target=TARGET, owner="x"), "ann")
    table.drain("b", "repair")
    file.save(table.changes())
    assert first is not None
    table.release(first.lease_id, "ann")
    table.deregister("c", "e")
    table.acquire(Acquire(request_id="r2", target=TARGET, owner="y"), "ann")
    table.readmit("b")
    file.save(table.changes())
    assert not table.changes()
    file.close()
    again = TrackerState(path, silent)
    found = again.load()
    again.close()
    assert found.fence == table.state.fence
    assert sorted(d.device.name for d in found.devices) == ["a", "b"]
    assert {d.device.name: d for d in found.devices} == {
        d.device.name: d for d in table.state.devices
    }
    assert (found.leases, found.standings) == (table.state.leases, table.state.standings)


def test_a_lease_writes_nothing_of_its_device(tmp_path: Path) -> None:
    path = tmp_path / "state"
    table = table_of("a", "b")
    file = TrackerState(path, silent)
    file.save(table.changes())
    leases = [table.acquire(Acquire(request_id=name, target=TARGET, owner="x")) for name in "rs"]
    begun = table.changes()
    assert (begun.devices, len(begun.leases)) == ((), 2)
    file.save(begun)
    file.close()
    again = TrackerState(path, silent)
    found = again.load()
    assert [holding.lease for holding in found.leases] == leases, "in the order of their fences"
    other = LeaseTable(ManualClock(), CountingIds())
    other.restore(found)
    assert other.state == table.state
    for lease in leases:
        assert lease is not None
        other.release(lease.lease_id)
    again.save(other.changes())
    assert again.load().leases == ()
    assert again.load().fence == table.state.fence, "though no lease is left that has it"
    again.close()


def test_a_lease_goes_on_with_the_time_that_was_left_of_it(tmp_path: Path) -> None:
    clock = ManualClock(1000.0)
    table = LeaseTable(clock, CountingIds())
    for name in "abc":
        table.register(device(name))
    file = TrackerState(tmp_path / "state", silent)
    wishes = [Acquire(request_id=name, target=TARGET, owner="x") for name in "rst"]
    renewed, silent_one, last = (table.acquire(wish) for wish in wishes)
    assert renewed is not None
    assert silent_one is not None
    assert last is not None
    file.save(table.changes())
    for _ in range(2):
        clock.advance(9)
        for name in "abc":
            table.heartbeat(Heartbeat(name=name, epoch="e"))
    table.renew(renewed.lease_id)
    file.save(table.changes())
    clock.advance(2)
    table.release(last.lease_id)
    file.save(table.changes())
    file.save(table.changes())  # a pulse: nothing has changed but the time
    file.close()

    file = TrackerState(tmp_path / "state", silent)
    other_clock = ManualClock(5.0)
    other = LeaseTable(other_clock, CountingIds())
    other.restore(file.load())
    file.close()
    left = other.state.left_seconds
    assert left == {renewed.lease_id: 28.0, silent_one.lease_id: 10.0}
    other_clock.advance(9)
    for name in "abc":
        other.heartbeat(Heartbeat(name=name, epoch="e"))
    other.renew(renewed.lease_id)
    other_clock.advance(2)
    assert ("lease", silent_one.lease_id) in other.expire()
    other.renew(renewed.lease_id)


def test_what_a_full_disk_did_not_take_is_saved_with_the_next_change(tmp_path: Path) -> None:
    events: list[str] = []
    file = TrackerState(tmp_path / "state", lambda event, **fields: events.append(event))
    table = table_of("a")
    with full_disk(os.getpid()):
        file.save(table.changes())
        table.register(device("b"))
        file.save(table.changes())
    assert events == ["state_fails"]
    table.register(device("c"))
    file.save(table.changes())
    assert [d.device.name for d in file.load().devices] == ["a", "b", "c"]
    file.close()


def test_a_file_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state"
    TrackerState(path, silent).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(SettingsError, match="it is of version 9, not 4"):
        TrackerState(path, silent)
