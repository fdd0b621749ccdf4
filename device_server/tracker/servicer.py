"""Translates the tracker's calls for the table, the line and the claims, and keeps what changes."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from tilefarm.clock import Clock
from tilefarm.errors import ForbiddenError
from tilefarm.rpc import methods, serving, timing, tracker_calls
from tilefarm.rpc.empty import Empty
from tilefarm.trust.access import Identity
from tilefarm.watch.log import Level, Log

from device_server.tracker.admission import LONGEST_REASON, require_modest, require_possible
from device_server.tracker.call_rate_limit import CallRateLimit
from device_server.tracker.claims import Claims
from device_server.tracker.device_states import LONGEST_OWNER
from device_server.tracker.heartbeat_interval import heartbeat_seconds
from device_server.tracker.leases import LeaseTable
from device_server.tracker.table_state import TableChanges
from device_server.tracker.waiting import WaitingLine

_TICK_SECONDS: Final = 0.25
_TICKS_PER_PULSE: Final = 8


_Request = TypeVar("_Request")
_Reply = TypeVar("_Reply")


class TrackerServicer:
    """Answers the tracker's calls from one table. Lives in one event loop.

    Args:
        table: whose decisions it carries.
        clock: tells how long clients wait.
        save: keeps what has changed in the table, after every call.
        rates: how often users may call; None: as they like.
    """

    def __init__(
        self,
        table: LeaseTable,
        clock: Clock,
        log: Log,
        save: Callable[[TableChanges], None],
        rates: CallRateLimit | None = None,
    ) -> None:
        self._table = table
        self._clock = clock
        self._log = log
        self._save = save
        self._rates = rates
        self._line = WaitingLine(table, clock, log)
        self._claims = Claims(table, self._line, clock)

    def routes(self) -> list[serving.Route[Any, Any]]:
        """The calls that this servicer answers."""
        return [
            serving.unary(methods.REGISTER, self.register),
            serving.unary(methods.HEARTBEAT, self.heartbeat),
            serving.unary(methods.DEREGISTER, self.deregister),
            serving.unary(methods.ACQUIRE, self._paced(self.acquire)),
            serving.unary(methods.RENEW, self._paced(self.renew)),
            serving.unary(methods.RELEASE, self._paced(self.release)),
            serving.unary(methods.LIST_DEVICES, self._paced(self.list_devices)),
            serving.unary(methods.LIST_REFUSED_RUNS, self._paced(self.list_refused_runs)),
            serving.unary(methods.DRAIN, self._paced(self.drain)),
            serving.unary(methods.READMIT, self._paced(self.readmit)),
        ]

    async def register(
        self, call: tracker_calls.Register, by: Identity
    ) -> tracker_calls.Registered:
        _require_own_name(call.device.name, by)
        require_possible(call, self._table.fence)
        self._table.register(call)
        self._log(
            "registered",
            device=call.device.name,
            address=call.device.address,
            target=call.device.target.short,
            epoch=call.device.epoch,
        )
        self._settle()
        return tracker_calls.Registered(
            heartbeat_seconds=heartbeat_seconds(
                call.device.name, self._table.limits.device_ttl_seconds
            )
        )

    async def heartbeat(
        self, call: tracker_calls.Heartbeat, by: Identity
    ) -> tracker_calls.HeartbeatReply:
        _require_own_name(call.name, by)
        if call.resting or call.quarantine:
            resting, quarantine = call.resting[:LONGEST_REASON], call.quarantine[:LONGEST_REASON]
            call = replace(call, resting=resting, quarantine=quarantine)
        reply = self._table.heartbeat(call)
        self._settle()
        return reply

    async def deregister(self, call: tracker_calls.DeviceRef, by: Identity) -> Empty:
        _require_own_name(call.name, by)
        self._table.deregister(call.name, call.epoch)
        self._settle()
        self._log("deregistered", device=call.name, epoch=call.epoch)
        return Empty()

    async def acquire(self, call: tracker_calls.Acquire, by: Identity) -> tracker_calls.Acquired:
        require_modest(call)
        with timing.phase("wait for a device"):
            try:
                return tracker_calls.Acquired(lease=await self._line.lease(call, by.user))
            finally:
                self._settle()

    async def renew(self, call: tracker_calls.Renew, by: Identity) -> tracker_calls.Renewed:
        ttl_seconds = self._table.renew(call.lease_id, by.user, lends=call.lends)
        wanted = self._claims.seconds_left(call.lease_id) if call.lends else None
        return tracker_calls.Renewed(ttl_seconds=ttl_seconds, wanted_seconds=wanted)

    async def release(self, call: tracker_calls.Release, by: Identity) -> Empty:
        heir = self._claims.heir(call.lease_id)
        self._table.release(
            call.lease_id, by.user, device_lost=call.device_lost, why=call.why[:LONGEST_REASON]
        )
        self._log(
            "released",
            lease=call.lease_id,
            device_lost=call.device_lost,
            why=call.why[:LONGEST_REASON],
        )
        self._line.serve(heir)
        self._settle()
        return Empty()

    async def list_devices(self, _: Empty, _by: Identity) -> tracker_calls.Devices:
        return self.overview()

    def overview(self) -> tracker_calls.Devices:
        """All devices with their use, and who waits."""
        now = self._clock.seconds()
        return tracker_calls.Devices(
            states=self._table.states(),
            waiting=tuple(
                tracker_calls.Waiting(
                    owner=place.wish.owner[:LONGEST_OWNER],
                    user=place.user,
                    priority=place.wish.priority,
                    waited_seconds=now - place.since,
                )
                for place in self._line.places()
            ),
        )

    async def list_refused_runs(
        self, call: tracker_calls.ListRefusedRuns, _by: Identity
    ) -> tracker_calls.ListedRefusedRuns:
        return tracker_calls.ListedRefusedRuns(runs=self._table.refused_runs(call.name))

    async def drain(self, call: tracker_calls.Drain, by: Identity) -> Empty:
        self._table.drain(call.name, call.why[:LONGEST_REASON])
        self._log("drained", device=call.name, user=by.user, why=call.why[:LONGEST_REASON])
        self._settle()
        return Empty()

    async def readmit(self, call: tracker_calls.Readmit, by: Identity) -> Empty:
        self._table.readmit(call.name)
        self._log("readmitted", device=call.name, user=by.user)
        self._settle()
        return Empty()

    async def watch(self) -> None:
        """Notices what runs out, for as long as the tracker lives."""
        for tick in itertools.count(1):
            await asyncio.sleep(_TICK_SECONDS)
            for kind, name in self._table.expire():
                if kind == "device":
                    self._log("expired", level=Level.WARNING, device=name)
                else:
                    self._log("expired", level=Level.WARNING, lease=name)
            self._settle(pulse=not tick % _TICKS_PER_PULSE and bool(self._table.held()))

    def _settle(self, *, pulse: bool = False) -> None:
        """After every call: serve those who wait, and keep what has changed.

        A pulse keeps the time alone: how much of it is left of leases that nobody renews.
        """
        self._line.serve()
        changes = self._table.changes()
        if changes or pulse:
            self._save(changes)

    def _paced(
        self, answer: Callable[[_Request, Identity], Awaitable[_Reply]]
    ) -> Callable[[_Request, Identity], Awaitable[_Reply]]:
        """An answer that users get so often and no more; what devices say is always heard."""

        async def paced(call: _Request, by: Identity) -> _Reply:
            if self._rates is not None and by.user:
                self._rates.take(by.user)
            return await answer(call, by)

        return paced


def _require_own_name(name: str, by: Identity) -> None:
    """Nothing if a device speaks of itself; a farm with one secret knows no names."""
    if by.user not in ("", name):
        raise ForbiddenError(
            f"{by} is not the device {name}", "--name with the name of the token or certificate"
        )
