"""The board behind a device: its bitstream before it serves, its power when it hangs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NoReturn

from tilefarm.errors import DeviceLostError, InfraError
from tilefarm.watch.log import Level, Log

from device_server.device.bitstream import ensure_programmed, forget_programmed, host_boot_id
from device_server.device.health_state import HealthState
from device_server.device.hooks import Hooks


class HookedBoard:
    """What the hooks of a board do, and when.

    Args:
        hooks: none for a simulator.
        folder: remembers what was programmed.
        device: the name to put into messages.
    """

    def __init__(self, hooks: Hooks, folder: Path, log: Log, *, device: str) -> None:
        self._hooks = hooks
        self._state = folder / "programmed"
        self._log = log
        self._device = device

    async def prepare(self) -> None:
        """Has the board run its bitstream.

        Raises:
            InfraError: it cannot.
        """
        bitstream = self._hooks.bitstream
        if bitstream is None:
            return
        boot_id = host_boot_id()
        fresh = await asyncio.to_thread(ensure_programmed, bitstream, self._state, boot_id=boot_id)
        self._log("bitstream", device=self._device, file=bitstream.file, programmed=fresh)

    async def rescue(self, stuck: asyncio.Event, condition: HealthState) -> NoReturn:
        """Cuts the power of a board that hangs; without a hook it hangs until somebody comes.

        Raises:
            DeviceLostError: the power was cut. A server that starts now programs the board, and
                serves if the known kernel is right.
        """
        await stuck.wait()
        if self._hooks.power_cycle is not None:
            try:
                await asyncio.to_thread(self._hooks.power_cycle.run)
            except InfraError as error:
                self._log("power_cycle", level=Level.ERROR, device=self._device, why=error.what)
            else:
                forget_programmed(self._state)
                self._log("power_cycle", device=self._device, why=condition.hung)
                raise DeviceLostError(
                    f"device {self._device} {condition.hung}; its power was cut and is on again",
                    "start the server anew; systemd does with Restart=on-failure",
                )
        await asyncio.Event().wait()
        raise AssertionError("nobody sets that event")
