"""Keeps a device known to its tracker: registers, sends heartbeats, registers anew if forgotten."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from tilefarm.clock import Clock
from tilefarm.errors import AccessError, FarmFault, InfraError, SettingsError, UnreachableError
from tilefarm.lease import DeviceInfo
from tilefarm.rpc import methods, tracker_calls
from tilefarm.rpc.caller import AsyncCaller
from tilefarm.trust.tls import Credentials
from tilefarm.watch.log import Log

from device_server.device.fencing import FenceGate
from device_server.device.heartbeat import Heartbeats

_CALL_SECONDS: Final = 4.0
_RETRY_SECONDS: Final = 0.5
REFUSED_SECONDS: Final = 5.0
_DEREGISTER_SECONDS: Final = 1.0
_DESERTED_SECONDS: Final = 300.0
"""Silence of the tracker after which no lease is good any more.

Before that it may start again, and nobody else can be given the device meanwhile; but a lease that
ends is not heard of either.
"""


_SHORTEST_PAUSE_SECONDS: Final = 0.05
"""Between two heartbeats, whatever a tracker asks for: one that asks for none gets no flood."""

_LONGEST_PAUSE_SECONDS: Final = 60.0
"""A device that is asked to be silent for longer would not hear that a lease has ended."""


def pause_seconds(asked_seconds: float) -> float:
    """How long a device is silent between two heartbeats when its tracker asks for that."""
    return min(max(asked_seconds, _SHORTEST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)


class Registration:
    """One device's side of its acquaintance with a tracker.

    Args:
        tracker: the tracker's address.
        credentials: what it shows.
        device: what to register; asked before every heartbeat, and registered anew when it has
            changed, so that nobody leases it by what it was.
        heartbeats: what it says from then on.
        secret: proves that it is the same device after a restart.
        gate: knows the highest fence that the device has seen, and hears when no lease is good.
        clock: tells how long the tracker has been silent.
    """

    def __init__(
        self,
        tracker: str,
        credentials: Credentials,
        device: Callable[[], DeviceInfo],
        heartbeats: Heartbeats,
        *,
        secret: bytes,
        gate: FenceGate,
        clock: Clock,
        log: Log,
    ) -> None:
        self._tracker = tracker
        self._credentials = credentials
        self._caller = self._connect()
        self._device = device
        info = device()
        self._ref = tracker_calls.DeviceRef(name=info.name, epoch=info.epoch)
        self._heartbeats = heartbeats
        self._secret = secret
        self._gate = gate
        self._clock = clock
        self._heard_seconds = clock.seconds()
        self._log = log
        self._answers = True
        self._was_known = False

    async def keep(self) -> None:
        """Stays registered until cancelled.

        Raises:
            SettingsError: another device has the name.
            AccessError: the tracker does not know the device, and never did. Later on that is a
                certificate or a token that somebody is about to renew.
        """
        while True:
            try:
                await self._known()
                continue
            except InfraError as error:
                self._note_silence(error)
                await asyncio.sleep(_RETRY_SECONDS)
            except AccessError as error:
                if not self._was_known:
                    raise
                self._note_silence(error)
                await asyncio.sleep(REFUSED_SECONDS)
            await self._reconnect()

    async def leave(self) -> None:
        """Tells the tracker that the device ends, if it listens."""
        try:
            await self._caller.unary(
                methods.DEREGISTER, self._ref, timeout_seconds=_DEREGISTER_SECONDS
            )
        except FarmFault as error:
            self._note_silence(error)
        await self._caller.close()

    async def _known(self) -> None:
        """Registers, and returns when the tracker has forgotten the device, or it has changed."""
        info = self._device()
        registered = await self._caller.unary(
            methods.REGISTER,
            tracker_calls.Register(device=info, fence=self._gate.fence, secret=self._secret),
            timeout_seconds=_CALL_SECONDS,
        )
        self._answers = self._was_known = True
        self._log("registered", device=info.name)
        while self._device() == info and await self._beat():
            await asyncio.sleep(pause_seconds(registered.heartbeat_seconds))

    async def _beat(self) -> bool:
        """Says that the device lives, and how; whether the tracker knows it."""
        reply = await self._caller.unary(
            methods.HEARTBEAT, self._heartbeats.next(self._ref), timeout_seconds=_CALL_SECONDS
        )
        self._heard_seconds = self._clock.seconds()
        self._heartbeats.heard(reply)
        return reply.known

    def _connect(self) -> AsyncCaller:
        return AsyncCaller(self._tracker, self._credentials, peer="tracker", lost=UnreachableError)

    async def _reconnect(self) -> None:
        """Begins a connection anew, with the certificates that are there now."""
        with contextlib.suppress(SettingsError):  # A folder that is being replaced.
            fresh = self._connect()
            await self._caller.close()
            self._caller = fresh

    def _note_silence(self, error: FarmFault) -> None:
        if self._answers:
            self._log("tracker_silent", device=self._ref.name, why=error.what)
        self._answers = False
        if self._clock.seconds() - self._heard_seconds >= _DESERTED_SECONDS:
            self._gate.end(self._gate.fence, "the device has lost its tracker")
