"""A search's devices: a thread each; who is there by name, and which threads have none."""

from __future__ import annotations

from tilefarm.clock import Clock
from tilefarm.errors import AccessError, NoDeviceError
from tilefarm.measurement import DeviceClock

from driver.campaign.interfaces import SearchSettings
from driver.farm.device_messages import NoDevice, Order, Report, Up
from driver.farm.device_thread import DeviceThread, join_all
from driver.farm.lease_source import LeaseSource


class Slots:
    """So many threads, each with a device, without one, or on its way to one.

    Args:
        source: where devices come from.
        report: takes what the threads say, on theirs.
    """

    def __init__(
        self, settings: SearchSettings, source: LeaseSource, *, report: Report, clock: Clock
    ) -> None:
        self._settings = settings
        self._source = source
        self._report = report
        self._clock = clock
        self._threads: list[DeviceThread] = []
        self._up: dict[str, Up] = {}
        self._empty: dict[int, NoDeviceError | AccessError] = {}

    def open(self) -> None:
        """Begin to look for devices."""
        for slot in range(self._settings.devices):
            self._threads.append(
                DeviceThread(
                    slot,
                    self._source,
                    wait_seconds=self._settings.device_wait_seconds,
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

    def put(self, device: str, order: Order) -> None:
        """Queue a run on a device that is there."""
        up = self._up[device]
        self._threads[up.slot].put(up.lease, order)

    def clock(self, device: str) -> DeviceClock:
        """What tells how long a kernel takes on a device that is there."""
        return self._up[device].lease.device.clock

    def confirm(self, device: str) -> None:
        """Have a device that is there confirm what it has run, behind what is queued."""
        up = self._up[device]
        self._threads[up.slot].confirm(up.lease)

    def get(self, device: str) -> Up | None:
        """A device with the thread that has it, if one has."""
        return self._up.get(device)

    def take(self, up: Up) -> None:
        """A thread has a device."""
        self._up[up.lease.device.name] = up
        self._empty.pop(up.slot, None)

    def lose(self, device: str, slot: int) -> bool:
        """A thread has a device no more. False: another one has it by now."""
        up = self._up.get(device)
        if up is None or up.slot != slot:
            return False
        del self._up[device]
        return True

    def wait_in_vain(self, none: NoDevice) -> None:
        """A thread has waited for long; it may have one yet."""
        self._empty[none.slot] = none.error

    @property
    def error(self) -> NoDeviceError | AccessError | None:
        """Why the first of those has none that waited in vain."""
        return next(iter(self._empty.values()), None)

    @property
    def all_empty(self) -> bool:
        """Whether all have waited in vain, and have none since."""
        return len(self._empty) == self._settings.devices
