"""The line in front of a table: its bound, its order, and who is passed over."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from kit.counting_ids import CountingIds
from kit.manual_clock import ManualClock
from tilefarm.digest import Digest
from tilefarm.errors import BusyError
from tilefarm.lease import DeviceInfo, Lease
from tilefarm.rpc.tracker_calls import Acquire, Register

from device_server.tracker import waiting
from device_server.tracker.leases import LeaseTable
from device_server.tracker.limits import TableLimits
from device_server.tracker.waiting import WaitingLine

TARGET = Digest.of(b"target")
WISH = Acquire(request_id="", target=TARGET, wait_seconds=5.0)


def line(*devices: str, limits: TableLimits | None = None) -> tuple[WaitingLine, LeaseTable]:
    clock = ManualClock()
    table = LeaseTable(clock, CountingIds(), limits=limits)
    for name in devices:
        info = DeviceInfo(
            name=name, address="a:1", target=TARGET, runtime="r", sandbox="s", epoch="e"
        )
        table.register(Register(device=info))
    return WaitingLine(table, clock, lambda event, **fields: None), table


async def asked(
    line: WaitingLine, user: str, priority: int = 0, **wish: Any
) -> asyncio.Task[Lease | None]:
    """A client that has come to the line."""
    task = asyncio.create_task(line.lease(replace(WISH, priority=priority, **wish), user))
    await asyncio.sleep(0)
    return task


def test_a_full_line_sends_away_with_delays_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MOST", 2)

    async def scene() -> list[BusyError]:
        full, _ = line()
        tasks = [await asked(full, user) for user in ("ann", "bob", "eve", "joe")]
        refused = [task.exception() for task in tasks[2:]]
        for task in tasks[:2]:
            task.cancel()
        return [error for error in refused if isinstance(error, BusyError)]

    first, second = asyncio.run(scene())
    assert first.what == "2 clients wait for devices already"
    assert "tilefarm top" in first.hint
    assert 1.0 <= first.retry_seconds < second.retry_seconds <= 2.0


def test_nobody_is_refused_for_whom_there_is_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MOST", 0)
    full, _ = line("a")
    assert asyncio.run(full.lease(WISH, "ann")) is not None


def test_a_device_that_comes_free_goes_to_the_first_in_line() -> None:
    async def scene() -> tuple[Lease | None, bool]:
        one, table = line("a")
        held = await one.lease(WISH, "ann")
        assert held is not None
        low, high = await asked(one, "bob"), await asked(one, "eve", priority=1)
        assert [place.user for place in one.places()] == ["eve", "bob"]
        table.release(held.lease_id, "ann")
        one.serve()
        lease = await high
        low.cancel()
        return lease, low.done()

    lease, low_was_served = asyncio.run(scene())
    assert lease is not None
    assert not low_was_served


def test_who_holds_enough_is_refused_at_the_door_and_passed_over_in_the_line() -> None:
    async def scene() -> Lease | None:
        one, table = line("a", "b", limits=TableLimits(leases_per_user=1))
        first, second = await one.lease(WISH, "joe"), await one.lease(WISH, "bob")
        assert first is not None
        assert second is not None
        early, other = await asked(one, "ann"), await asked(one, "ann")
        late = await asked(one, "eve")
        for lease, user in ((first, "joe"), (second, "bob")):
            table.release(lease.lease_id, user)
            one.serve()
        assert await early is not None
        assert not other.done()
        other.cancel()
        with pytest.raises(BusyError, match="ann holds 1 lease already") as refused:
            await one.lease(WISH, "ann")
        assert "--leases-per-user" in refused.value.hint
        return await late

    assert asyncio.run(scene()) is not None


def test_who_comes_again_with_the_same_wish_has_kept_the_place() -> None:
    async def scene() -> list[str]:
        one, _ = line()
        early = await asked(one, "ann", request_id="r1", wait_seconds=0.01)
        late = await asked(one, "bob", request_id="r2")
        assert await early is None
        again = await asked(one, "ann", request_id="r1")
        other = await asked(one, "ann", request_id="r3")
        users = [f"{place.user} {place.wish.request_id}" for place in one.places()]
        for task in (late, again, other):
            task.cancel()
        return users

    assert asyncio.run(scene()) == ["ann r1", "bob r2", "ann r3"]


def test_a_device_that_is_given_back_for_somebody_goes_to_them() -> None:
    async def scene() -> tuple[Lease | None, ...]:
        one, table = line("a", "b")
        held = await one.lease(WISH, "ann"), await one.lease(WISH, "ann")
        tasks = [await asked(one, "bob"), await asked(one, "eve"), await asked(one, "joe", 1)]
        (heir,) = (place for place in one.places() if place.user == "eve")
        for lease in held:
            assert lease is not None
            table.release(lease.lease_id, "ann")
            one.serve(heir)
        await asyncio.sleep(0)
        tasks[0].cancel()
        return tuple(task.result() if task.done() else None for task in tasks)

    bob, eve, joe = asyncio.run(scene())
    assert joe is not None, "a higher priority comes first all the same"
    assert eve is not None
    assert bob is None, "who came first waits for the next"
