"""Keeps a device known to its tracker: registers, sends heartbeats, registers anew if forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from tilefarm import calls, methods
from tilefarm.errors import FarmFault, InfraError
from tilefarm.lease import DeviceInfo
from tilefarm.log import Log
from tilefarm.rpc import AsyncCaller

_CALL_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 0.5
_DEREGISTER_SECONDS: Final = 1.0


class Registration:
    """One device's side of its acquaintance with a tracker.

    Args:
        tracker: the tracker's address.
        token: the farm's shared secret.
        device: what to register.
        fence: gives the highest fence that the device has seen.
        well: tells whether the device can run; heartbeats pause while it cannot.
    """

    def __init__(
        self,
        tracker: str,
        token: str,
        device: DeviceInfo,
        *,
        fence: Callable[[], int],
        well: Callable[[], bool],
        log: Log,
    ) -> None:
        self._caller = AsyncCaller(tracker, token, peer="tracker", lost=InfraError)
        self._device = device
        self._ref = calls.DeviceRef(name=device.name, epoch=device.epoch)
        self._fence = fence
        self._well = well
        self._log = log
        self._answers = True

    async def keep(self) -> None:
        """Stays registered until cancelled.

        Raises:
            SettingsError: another device server has taken the name.
            AccessError: the tracker does not know the token.
        """
        while True:
            try:
                await self._known()
            except InfraError as error:
                self._note_silence(error)
                await asyncio.sleep(_RETRY_SECONDS)

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
        """Registers, and returns when the tracker has forgotten the device."""
        registered = await self._caller.unary(
            methods.REGISTER,
            calls.Register(device=self._device, fence=self._fence()),
            timeout_seconds=_CALL_SECONDS,
        )
        self._answers = True
        self._log("registered", device=self._device.name)
        known = True
        while known:
            await asyncio.sleep(registered.heartbeat_seconds)
            if self._well():
                reply = await self._caller.unary(
                    methods.HEARTBEAT, self._ref, timeout_seconds=_CALL_SECONDS
                )
                known = reply.known

    def _note_silence(self, error: FarmFault) -> None:
        if self._answers:
            self._log("tracker_silent", device=self._device.name, why=error.what)
        self._answers = False
