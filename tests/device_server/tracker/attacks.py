"""What devices, clients and users do to go beyond the bounds of a tracker."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest
from kit.counting_ids import CountingIds
from kit.farm.attacks import CUT, Found, Lab, attack, refused
from kit.farm.full_disk import full_disk
from kit.farm.in_process import calling
from kit.growth import growth_nbytes
from kit.manual_clock import ManualClock
from tilefarm.digest import Digest
from tilefarm.errors import BusyError
from tilefarm.lease import DeviceInfo
from tilefarm.rpc import methods, wire
from tilefarm.rpc.caller import MOST_REPLY_NBYTES
from tilefarm.rpc.empty import Empty
from tilefarm.rpc.tracker_calls import (
    Acquire,
    Devices,
    Drain,
    Heartbeat,
    RefusedRun,
    RefusedRuns,
    Register,
    Usage,
    Waiting,
)

from device_server.tracker import (
    administrative_states,
    call_rate_limit,
    deadlines,
    idle,
    registry,
    state_file,
    waiting,
)
from device_server.tracker.administrative_states import AdministrativeStates
from device_server.tracker.admission import (
    LONGEST_PORTRAIT,
    LONGEST_REASON,
    LONGEST_SECRET,
    LONGEST_WORDS,
    MOST_LABELS,
    require_modest,
    require_possible,
)
from device_server.tracker.call_rate_limit import CallRateLimit
from device_server.tracker.device_states import LONGEST_OWNER
from device_server.tracker.leases import LeaseTable
from device_server.tracker.refused import MOST_REFUSED
from device_server.tracker.registry import MOST_DEVICES
from device_server.tracker.shares import MOST_CHANGED, Claimant, Shares
from device_server.tracker.state_file import TrackerState
from device_server.tracker.usage_rate import MOST_MARKS, UsageRate
from device_server.tracker.waiting import MOST_LEFT, WaitingLine

TARGET: Final = Digest.of(b"target")
WISH: Final = Acquire(request_id="r", target=TARGET, owner="x", wait_seconds=60.0)


def register(name: str = "d", epoch: str = "e", target: Digest = TARGET) -> Register:
    info = DeviceInfo(
        name=name, address="a:1", target=target, runtime="r", sandbox="s", epoch=epoch
    )
    return Register(device=info, secret=b"s")


FEW_NBYTES: Final = 20_000
"""Less than a thousand of anything."""


def new_table() -> LeaseTable:
    return LeaseTable(ManualClock(), CountingIds())


@attack("devices of a tracker")
def _(lab: Lab) -> Found:
    lab.patch.setattr(registry, "MOST_DEVICES", 2)
    table = new_table()
    for name in ("a", "b"):
        table.register(register(name))
    found = refused(lambda: table.register(register("c")), "2 devices live")
    table.register(register("b", "again"))
    table.deregister("a", "e")
    table.register(register("c"))
    return found


@attack("earlier lives of a device")
def _(lab: Lab) -> Found:
    lab.patch.setattr(registry, "MOST_EPOCHS", 2)
    table = new_table()
    for epoch in ("e1", "e2", "e3", "e4"):
        table.register(register(epoch=epoch))
    refused(lambda: table.register(register(epoch="e3")), "another device server has taken")
    table.register(register(epoch="e1"))
    return Found("the oldest are forgotten", "nobody: the name goes to whoever registers")


@attack("what a device says of itself")
def _(lab: Lab) -> Found:
    def portrait(**words: Any) -> Register:
        return replace(register(), device=replace(register().device, **words))

    require_possible(portrait(address="a" * (LONGEST_PORTRAIT - 3)))
    for words in ("address", "runtime", "sandbox", "epoch", "self_test"):
        long = portrait(**{words: "\N{SNOWMAN}" * 501})
        found = refused(partial(require_possible, long), "bytes of itself")
    labels = (("k", "v" * LONGEST_PORTRAIT),)
    assert found == refused(lambda: require_possible(portrait(labels=labels)), "bytes of itself")
    return found


@attack("labels of a device or a wish")
def _(lab: Lab) -> Found:
    labels = (("k", "v"),) * (MOST_LABELS + 1)
    info = replace(register().device, labels=labels)
    found = refused(lambda: require_possible(replace(register(), device=info)), "65 labels")
    assert found == refused(lambda: require_modest(replace(WISH, labels=labels)), "65 labels")
    return found


@attack("a device's secret")
def _(lab: Lab) -> Found:
    long = replace(register(), secret=b"s" * (LONGEST_SECRET + 1))
    return refused(lambda: require_possible(long), "a secret of 65 bytes")


@attack("a word of a wish")
def _(lab: Lab) -> Found:
    long = "x" * (LONGEST_WORDS + 1)
    for wish in (
        replace(WISH, request_id=long),
        replace(WISH, owner=long),
        replace(WISH, job=long),
        replace(WISH, labels=(("key", long),)),
    ):
        found = refused(partial(require_modest, wish), "has 100[14] characters")
    return found


@attack("a reply")
def _(lab: Lab) -> Found:
    """The longest list that there can be is a message that clients take."""
    table = new_table()
    wide = "\N{PILE OF POO}"  # four bytes
    info = replace(register("d" * 64).device, address="a" * LONGEST_PORTRAIT)
    table.register(Register(device=info, secret=b"s"))
    table.heartbeat(
        Heartbeat(
            name=info.name,
            epoch=info.epoch,
            usage=Usage(runs=1 << 40, busy_seconds=1e8, up_seconds=1e8),
            resting=wide * LONGEST_REASON,
        )
    )
    table.heartbeat(Heartbeat(name=info.name, epoch=info.epoch))
    lease = table.acquire(replace(WISH, owner=wide * LONGEST_WORDS), "u" * 64)
    assert lease is not None
    (state,) = table.states()
    assert state.owner == wide * LONGEST_OWNER
    words = wide * LONGEST_REASON
    state = replace(state, resting=words, quarantine=words, draining=words)
    waits = Waiting(owner=wide * LONGEST_OWNER, user="u" * 64, priority=9, waited_seconds=1e8)
    reply = Devices(states=(state,) * MOST_DEVICES, waiting=(waits,) * waiting.MOST)
    assert len(wire.DEVICES.encode(reply)) < MOST_REPLY_NBYTES
    return Found("none is as long: words are cut", "whoever reads it")


@attack("the owner of a lease, in a list")
def _(lab: Lab) -> Found:
    table = new_table()
    table.register(register())
    table.acquire(replace(WISH, owner="o" * LONGEST_WORDS))
    (state,) = table.states()
    assert len(state.owner) == LONGEST_OWNER
    return CUT


@attack("a reason of a device's state")
def _(lab: Lab) -> Found:
    tracker, long = lab.farm.tracker(), "w" * (LONGEST_REASON + 1)
    with calling(tracker.address) as caller:
        ask = partial(caller.unary, timeout_seconds=60.0)
        ask(methods.REGISTER, register())
        ask(methods.HEARTBEAT, Heartbeat(name="d", epoch="e", resting=long, quarantine=long))
        ask(methods.DRAIN, Drain(name="d", why=long))
        (state,) = ask(methods.LIST_DEVICES, Empty()).states
    for told in (state.resting, state.quarantine, state.draining):
        assert told == long[:-1]
    return CUT


@attack("marks of a device's pace")
def _(lab: Lab) -> Found:
    pace = UsageRate()
    for runs in range(3 * MOST_MARKS):
        pace.hear(Usage(runs=runs, busy_seconds=1.0, up_seconds=1.0))
    assert pace.lately is not None
    assert pace.lately.runs == MOST_MARKS - 1
    return Found("the oldest are forgotten", "nobody")


def refusing(count: int, words: str = "x") -> Heartbeat:
    run = RefusedRun(
        artifact=TARGET, entry=words, crashes=2, status=words, why=words, refused_seconds=1.0
    )
    return Heartbeat(name="d", epoch="e", refused=RefusedRuns(edition=1, runs=(run,) * count))


@attack("runs that a device refuses, at its tracker")
def _(lab: Lab) -> Found:
    table = new_table()
    table.register(register())
    table.heartbeat(refusing(MOST_REFUSED + 1))
    assert len(table.refused_runs("d")) == MOST_REFUSED
    return Found("the oldest are forgotten", "nobody: the device knows them")


@attack("a word on a run that a device refuses, at its tracker")
def _(lab: Lab) -> Found:
    table = new_table()
    table.register(register())
    table.heartbeat(refusing(1, "x" * 1000))
    (run,) = table.refused_runs("d")
    assert (len(run.entry), len(run.status), len(run.why)) == (300, 300, 300)
    return CUT


@attack("places of devices that were leased or have ended")
def _(lab: Lab) -> Found:
    lab.patch.setattr(idle, "MOST_STALE", 10)
    table = new_table()
    table.register(register())

    def come_anew(number: int) -> None:
        table.register(register("p", f"e{number}", Digest.of(b"%d" % number)))

    assert growth_nbytes(come_anew) < FEW_NBYTES
    assert table.acquire(WISH) is not None
    return Found("all are forgotten", "nobody")


@attack("things that would have run out")
def _(lab: Lab) -> Found:
    lab.patch.setattr(deadlines, "MOST_GONE", 10)
    table = new_table()
    table.register(register())

    def come_and_go(number: int) -> None:
        lease = table.acquire(replace(WISH, request_id=f"{number}"))
        assert lease is not None
        table.release(lease.lease_id)
        table.register(register("p", f"e{number}"))
        table.changes()  # as a state file takes them

    assert growth_nbytes(come_and_go) < FEW_NBYTES
    return Found("all are forgotten", "nobody")


@attack("standings of devices")
def _(lab: Lab) -> Found:
    lab.patch.setattr(administrative_states, "MOST_STANDINGS", 3)
    file = TrackerState(lab.folder / "state", lab.farm.log)
    table = new_table()
    table.register(register("alive"))
    table.heartbeat(Heartbeat(name="alive", epoch="e", quarantine="burns"))
    for number in range(5):
        table.register(register(f"d{number}"))
        table.heartbeat(Heartbeat(name=f"d{number}", epoch="e", quarantine="burns"))
        table.deregister(f"d{number}", "e")
        file.save(table.changes())
    kept = ["alive", "d3", "d4"]
    assert [name for name, _ in table.state.standings] == kept
    assert [name for name, _ in file.load().standings] == kept
    file.close()
    return Found("the oldest of devices that do not live are forgotten", "nobody")


@attack("users who lost a device")
def _(lab: Lab) -> Found:
    kept = AdministrativeStates(2)
    for number in range(20):
        kept.lost("d", user=f"u{number}", owner="o" * 1000, why="w" * 300)
    assert len(kept.of("d").lost_by) == 16
    assert len(kept.of("d").quarantine) == LONGEST_REASON
    return Found("the oldest are forgotten", "nobody: the device is in quarantine")


async def _wait(line: WaitingLine, count: int, user: str) -> list[asyncio.Task[Any]]:
    tasks = [
        asyncio.create_task(line.lease(replace(WISH, request_id=f"{user}{n}"), user))
        for n in range(count)
    ]
    await asyncio.sleep(0)
    return tasks


def _crowd(lab: Lab, first: int, second: int) -> BusyError:
    """What the next one after so many of ann and so many of bob is told."""

    async def story() -> BusyError:
        line = WaitingLine(new_table(), ManualClock(), lab.farm.log)
        tasks = [*await _wait(line, first, "ann"), *await _wait(line, second, "bob")]
        with pytest.raises(BusyError) as error:
            await line.lease(WISH, "ann" if not second else "eve")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return error.value

    return asyncio.run(story())


def told(error: BusyError) -> Found:
    def ask() -> None:
        raise error

    return refused(ask, "wait for devices already")


@attack("clients that wait for devices")
def _(lab: Lab) -> Found:
    return told(_crowd(lab, 100, 100))


@attack("clients of one user that wait for devices")
def _(lab: Lab) -> Found:
    return told(_crowd(lab, 100, 0))


@attack("places of clients that may come again")
def _(lab: Lab) -> Found:
    async def wait(line: WaitingLine, users: Sequence[str]) -> list[str]:
        """Who waits meanwhile, in turn."""
        wishes = [(line.lease(replace(WISH, request_id=f"by {user}"), user)) for user in users]
        tasks = [asyncio.create_task(wish) for wish in wishes]
        await asyncio.sleep(0)
        waiting = [place.user for place in line.places()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return waiting

    async def story() -> list[str]:
        line = WaitingLine(new_table(), ManualClock(), lab.farm.log)
        for n in range(MOST_LEFT + 1):
            await wait(line, [f"u{n}"])
        return await wait(line, ["u0", "u1"])

    assert asyncio.run(story()) == ["u1", "u0"]
    return Found("the oldest are forgotten", "nobody: they stand at the end of the line")


@attack("users and jobs whose last lease is remembered")
def _(lab: Lab) -> Found:
    shares = Shares()
    for number in range(MOST_CHANGED):
        shares.add(claimant := Claimant("ann", f"job {number}"))
        shares.remove(claimant)
    assert not shares.last_of_job(Claimant("ann", "job 0"))
    assert shares.last_of_job(Claimant("ann", "job 1")), "beside it, ann herself"
    assert not shares.jobs
    assert not shares.users
    return Found("the oldest are forgotten", "nobody: it is their turn earlier")


@attack("users whose calls a tracker counts")
def _(lab: Lab) -> Found:
    lab.patch.setattr(call_rate_limit, "MOST_USERS", 2)
    kept = CallRateLimit(1.0, ManualClock())
    for user in ("ann", "bob", "ann2", "ann"):
        kept.take(user)
    for user in ("ann2", "ann"):
        with pytest.raises(BusyError):
            kept.take(user)
    kept.take("bob")
    return Found("the oldest are forgotten", "nobody: they may call as if they had been quiet")


@attack("pages of a state file's log")
def _(lab: Lab) -> Found:
    lab.patch.setattr(state_file, "MOST_LOG_PAGES", 16)
    path, table = lab.folder / "state", new_table()
    file = TrackerState(path, lab.farm.log)
    for number in range(500):
        table.register(register(f"d{number % 3}", f"e{number}"))
        file.save(table.changes())
    assert path.stat().st_size < 100_000
    assert path.with_name("state-wal").stat().st_size < 16 * 4096 * 2
    file.close()
    return Found("moved into the file", "nobody")


@attack("changes that a full disk does not take")
def _(lab: Lab) -> Found:
    table = new_table()
    table.register(register())
    file = TrackerState(lab.folder / "state", lab.farm.log)
    file.save(table.changes())

    def come_and_go(number: int) -> None:
        name = f"p{number}"
        table.register(register(name))
        lease = table.acquire(replace(WISH, request_id=name))
        assert lease is not None
        table.release(lease.lease_id)
        table.deregister(name, "e")
        file.save(table.changes())

    with full_disk(os.getpid()):
        assert growth_nbytes(come_and_go) < FEW_NBYTES
    assert len(lab.logged("state_fails")) == 1
    table.drain("d", "repair")
    file.save(table.changes())
    found = file.load()
    file.close()
    assert (found.fence, found.leases) == (table.state.fence, ())
    assert [call.device.name for call in found.devices] == ["d"]
    return Found("kept until it does, of what lives", "the tracker's log (`state_fails`)")
