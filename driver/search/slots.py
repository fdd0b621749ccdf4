"""Which devices a search has, by name, and which of its threads have waited for one in vain."""

from __future__ import annotations

from tilefarm.errors import AccessError, NoDeviceError

from driver.farm.device_messages import NoDevice, Up


class Slots:
    """So many threads, each with a device, without one, or on its way to one."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._up: dict[str, Up] = {}
        self._empty: dict[int, NoDeviceError | AccessError] = {}

    def __getitem__(self, device: str) -> Up:
        return self._up[device]

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
        return len(self._empty) == self._count

    @property
    def gathered(self) -> bool:
        """Whether none is on its way."""
        return len(self._empty.keys() | {up.slot for up in self._up.values()}) == self._count
