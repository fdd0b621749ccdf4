"""The tracker: a LeaseTable behind gRPC, with clients that wait for devices in arrival order."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from tilefarm import calls, methods, serving
from tilefarm.clock import Clock, SystemClock
from tilefarm.errors import CapacityError
from tilefarm.lease import Lease
from tilefarm.log import LineLog, Log
from tilefarm.names import RandomIds

from device_server import lifetime
from device_server.leases import LeaseTable, TableLimits

_WAITERS: Final = 200
_TICK_SECONDS: Final = 0.25
_HEARTBEATS_PER_TTL: Final = 5
_MAX_WAIT_SECONDS: Final = 3600.0


@dataclass(slots=True, eq=False)
class _Waiter:
    wish: calls.Acquire
    granted: asyncio.Future[Lease]


class TrackerServicer:
    """Answers the tracker's calls from one table. Lives in one event loop."""

    def __init__(self, table: LeaseTable, log: Log) -> None:
        self._table = table
        self._log = log
        self._waiters: list[_Waiter] = []

    def routes(self) -> list[serving.Route[Any, Any]]:
        """The calls that this servicer answers."""
        return [
            serving.unary(methods.REGISTER, self.register),
            serving.unary(methods.HEARTBEAT, self.heartbeat),
            serving.unary(methods.DEREGISTER, self.deregister),
            serving.unary(methods.ACQUIRE, self.acquire),
            serving.unary(methods.RENEW, self.renew),
            serving.unary(methods.RELEASE, self.release),
            serving.unary(methods.LIST_DEVICES, self.list_devices),
        ]

    async def register(self, call: calls.Register) -> calls.Registered:
        self._table.register(call.device, fence=call.fence)
        self._log(
            "registered",
            device=call.device.name,
            address=call.device.address,
            target=call.device.target.short,
            epoch=call.device.epoch,
        )
        self._serve_waiters()
        heartbeat_seconds = self._table.limits.device_ttl_seconds / _HEARTBEATS_PER_TTL
        return calls.Registered(heartbeat_seconds=heartbeat_seconds)

    async def heartbeat(self, call: calls.DeviceRef) -> calls.HeartbeatReply:
        known = self._table.heartbeat(call.name, call.epoch)
        self._serve_waiters()
        return calls.HeartbeatReply(known=known)

    async def deregister(self, call: calls.DeviceRef) -> calls.Nothing:
        self._table.deregister(call.name, call.epoch)
        self._log("deregistered", device=call.name, epoch=call.epoch)
        return calls.Nothing()

    async def acquire(self, call: calls.Acquire) -> calls.Acquired:
        if len(self._waiters) >= _WAITERS:
            raise CapacityError(f"{_WAITERS} clients wait for devices already", "try again later")
        with self._waiting(call) as waiter:
            try:
                async with asyncio.timeout(_bounded(call.wait_seconds)):
                    return calls.Acquired(lease=await waiter.granted)
            except TimeoutError:
                # The lease may have come in the very moment in which the time was up.
                return calls.Acquired(lease=waiter.granted.result() if _has(waiter) else None)
            except asyncio.CancelledError:
                if _has(waiter):
                    self._table.release(waiter.granted.result().lease_id)
                raise

    async def renew(self, call: calls.Renew) -> calls.Renewed:
        return calls.Renewed(ttl_seconds=self._table.renew(call.lease_id))

    async def release(self, call: calls.Release) -> calls.Nothing:
        self._table.release(call.lease_id, device_lost=call.device_lost)
        self._log("released", lease=call.lease_id, device_lost=call.device_lost)
        self._serve_waiters()
        return calls.Nothing()

    async def list_devices(self, _: calls.Nothing) -> calls.Devices:
        return calls.Devices(states=self._table.states())

    async def watch(self) -> None:
        """Notices what runs out, for as long as the tracker lives."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            for kind, name in self._table.expire():
                self._log("expired", **{kind: name})
            self._serve_waiters()

    @contextmanager
    def _waiting(self, wish: calls.Acquire) -> Iterator[_Waiter]:
        waiter = _Waiter(wish, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        self._serve_waiters()
        try:
            yield waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _serve_waiters(self) -> None:
        for waiter in list(self._waiters):
            if waiter.granted.done():
                continue  # Its time is up, or its client went away; it leaves the line by itself.
            lease = self._table.acquire(waiter.wish)
            if lease is None:
                continue
            self._waiters.remove(waiter)
            waiter.granted.set_result(lease)
            self._log(
                "leased",
                lease=lease.lease_id,
                device=lease.device.name,
                fence=lease.fence,
                owner=waiter.wish.owner,
            )


def _has(waiter: _Waiter) -> bool:
    return waiter.granted.done() and not waiter.granted.cancelled()


def _bounded(wait_seconds: float) -> float:
    if math.isnan(wait_seconds):
        return 0.0
    return min(max(wait_seconds, 0.0), _MAX_WAIT_SECONDS)


async def run_tracker(
    stopping: asyncio.Event,
    *,
    listen: str,
    token: str,
    on_ready: Callable[[str], None],
    limits: TableLimits | None = None,
    clock: Clock | None = None,
    log: Log | None = None,
) -> None:
    """A tracker from start to end, in the running event loop.

    Raises:
        SettingsError: see `serving.start`.
    """
    clock, log = clock or SystemClock(), log or LineLog("tracker")
    # Wall milliseconds are above any fence that an earlier tracker gave, unless time ran backwards;
    # then the fences that devices bring along when they register again are.
    table = LeaseTable(clock, RandomIds(), limits=limits, fence=int(clock.wall_seconds() * 1000))
    servicer = TrackerServicer(table, log)
    server, address = await serving.start(servicer.routes(), listen=listen, token=token, log=log)
    watch = asyncio.create_task(servicer.watch())
    log("ready", address=address)
    on_ready(address)
    await stopping.wait()
    watch.cancel()
    await serving.stop(server)
    log("stopped", address=address)


def serve(
    *,
    listen: str = "127.0.0.1:0",
    token: str,
    on_ready: Callable[[str], None],
    die_with_parent: bool = False,
) -> None:
    """Runs a tracker in this process until SIGTERM or SIGINT.

    Args:
        listen: `host:port` on loopback or `unix:/path`.
        token: the farm's shared secret.
        on_ready: gets the address, once, when calls are answered.
        die_with_parent: end when the thread that started this process ends.

    Raises:
        SettingsError: the address is not on loopback, not an address, or taken.
    """

    async def main(stopping: asyncio.Event) -> None:
        await run_tracker(stopping, listen=listen, token=token, on_ready=on_ready)

    lifetime.run_until_stopped(main, die_with_parent=die_with_parent)
