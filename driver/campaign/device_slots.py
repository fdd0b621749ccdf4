"""The devices of a search: a thread each; who is there by name, and which threads have none."""

from __future__ import annotations

from typing import Final

from tilefarm.clock import Clock
from tilefarm.errors import AccessError, NoDeviceError
from tilefarm.lease import DeviceInfo
from tilefarm.measurement import DeviceClock

from driver.campaign.events import DevicesGone, Event
from driver.farm.device_messages import (
    Confirmed,
    DeviceBusy,
    DeviceLent,
    DeviceLost,
    DeviceUp,
    Message,
    NoDevice,
    Order,
    Report,
    RunEnded,
)
from driver.farm.device_thread import DeviceThread, join_all
from driver.farm.lease_source import LeaseSource

BROKEN_SECONDS: Final = 2.0
"""Runs under way may take so long to end once there is no answer to wait for."""


class DeviceSlots:
    """So many threads, each with a device, without one, or on its way to one.

    Args:
        source: where devices come from.
        devices: how many to lease.
        wait_seconds: for each of them.
        report: takes what the threads say, on theirs.
    """

    def __init__(
        self,
        source: LeaseSource,
        *,
        devices: int,
        wait_seconds: float,
        report: Report,
        clock: Clock,
    ) -> None:
        self._source = source
        self._devices = devices
        self._wait_seconds = wait_seconds
        self._report = report
        self._clock = clock
        self._threads: list[DeviceThread] = []
        self._up: dict[str, DeviceUp] = {}
        self._empty: dict[int, NoDeviceError | AccessError] = {}

    def open(self) -> None:
        """Begin to look for devices."""
        for slot in range(self._devices):
            self._threads.append(
                DeviceThread(
                    slot,
                    self._source,
                    wait_seconds=self._wait_seconds,
                    report=self._report,
                    clock=self._clock,
                )
            )

    def close(self, within_seconds: float) -> None:
        """Give all back, after the runs that are under way if they end in time."""
        for thread in self._threads:
            thread.close()
        join_all(self._threads, within_seconds, self._clock)

    @property
    def idle(self) -> bool:
        """Whether no thread will say anything unless it is given something to do."""
        return all(thread.idle for thread in self._threads)

    @property
    def error(self) -> NoDeviceError | AccessError | None:
        """Why the first of those has none that waited in vain."""
        return next(iter(self._empty.values()), None)

    def put(self, device: str, order: Order) -> None:
        """Queue a run on a device that is there."""
        up = self._up[device]
        self._threads[up.slot].put(up.lease, order)

    def confirm(self, device: str) -> None:
        """Have a device that is there confirm what it has run, behind what is queued."""
        up = self._up[device]
        self._threads[up.slot].confirm(up.lease)

    def clock(self, device: str) -> DeviceClock:
        """What tells how long a kernel takes on a device that is there."""
        return self._up[device].lease.device.clock

    def info(self, device: str) -> DeviceInfo | None:
        """What a device was when it was leased, if it is there."""
        up = self._up.get(device)
        return None if up is None else up.lease.device

    def heard(self, message: Message) -> list[Event]:
        """What a campaign has to hear of what a thread says: no news of a device that is gone."""
        match message:
            case DeviceUp(lease=lease):
                earlier = self._up.get(lease.device.name)
                self._up[lease.device.name] = message
                self._empty.pop(message.slot, None)
                why = "leased anew before its loss was told"
                return [*([DeviceLost(earlier.device, why)] if earlier else []), message]
            case DeviceLost() | DeviceLent():
                return [message] if self._lose(message) else []
            case NoDevice(error=error):
                self._empty[message.slot] = error
                return [DevicesGone(error.what)] if len(self._empty) == self._devices else []
            case RunEnded() | Confirmed():
                return [message]
            case DeviceBusy():
                return []  # Its runs are under way for longer.

    def _lose(self, lost: DeviceLost | DeviceLent) -> bool:
        """A thread has a device no more. False: another one has it by now."""
        up = self._up.get(lost.device)
        if up is None or up.slot != lost.slot:
            return False
        del self._up[lost.device]
        return True
