"""The devices that live: by name, for as long as they are heard of, and which of them rest."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator
from typing import Final

from tilefarm.digest import Digest
from tilefarm.errors import BusyError, NoDeviceError, SettingsError
from tilefarm.lease import DeviceInfo
from tilefarm.rpc.tracker_calls import Register

from device_server.tracker.deadlines import Deadlines
from device_server.tracker.entries import Device
from device_server.tracker.idle import IdleDevices

MOST_DEVICES: Final = 2048
"""That live; twice the largest farm that was measured. A list of all of them is one message."""

MOST_EPOCHS: Final = 64
"""Earlier lives of a device, whose servers do not get its name back."""

_RETRY_SECONDS: Final = 10.0


class Registry:
    """Devices from their registration to their end, whoever decides on it.

    Args:
        ttl_seconds: silence of a device after which it is over.
    """

    def __init__(self, ttl_seconds: float) -> None:
        self._ttl_seconds = ttl_seconds
        self._devices: dict[str, Device] = {}
        self._deadlines: Deadlines[Device] = Deadlines()
        self._idle = IdleDevices()
        self._changed: set[str] = set()

    def __iter__(self) -> Iterator[Device]:
        return iter(self._devices.values())

    def get(self, name: str) -> Device | None:
        """A device, if it lives."""
        return self._devices.get(name)

    def in_epoch(self, name: str, epoch: str) -> Device | None:
        """A device, if it lives, and this life of it."""
        device = self._devices.get(name)
        return device if device and device.info.epoch == epoch else None

    def require(self, name: str) -> Device:
        """A device.

        Raises:
            NoDeviceError: no such device lives.
        """
        device = self._devices.get(name)
        if device is None:
            raise NoDeviceError(
                f"no device {name} is registered", "`tilefarm devices` lists those that are"
            )
        return device

    def known(self, call: Register) -> Device | None:
        """As what a device that registers is known already, if it lives.

        Raises:
            SettingsError: a living device has its name, or a server that started later.
            BusyError: there is no place for another one.
        """
        known = self._devices.get(call.device.name)
        if known:
            _require_same(known, call)
        elif len(self._devices) >= MOST_DEVICES:
            raise BusyError(
                f"{len(self._devices)} devices live on this tracker already",
                "let this one register at another tracker",
                _RETRY_SECONDS,
            )
        return known

    def add(self, call: Register, now: float, *, after: Device | None = None) -> Device:
        """A life of a device begins, after an earlier one that has ended; it does not rest yet."""
        device = Device(call.device, call.secret, now + self._ttl_seconds)
        if after:
            device.retired_epochs = (*after.retired_epochs, after.info.epoch)[-MOST_EPOCHS:]
            device.fence = after.fence
        self._devices[device.info.name] = device
        self._deadlines.add(device)
        self._changed.add(device.info.name)
        return device

    def change(self, device: Device, info: DeviceInfo) -> None:
        """A device says in the same life what it is now."""
        device.info = info
        self._changed.add(info.name)

    def hear(self, device: Device, now: float) -> None:
        """A device has its whole time to live from now on."""
        device.until = now + self._ttl_seconds

    def end(self, device: Device) -> None:
        """A device that lives is no more."""
        device.gone = True
        del self._devices[device.info.name]
        self._changed.add(device.info.name)

    def over(self, now: float) -> list[Device]:
        """Devices that were silent too long; each is told once, and is then to be ended."""
        return self._deadlines.over(now)

    def rest(self, device: Device) -> None:
        """Nobody leases a device from now on."""
        self._idle.add(device)

    def first(self, target: Digest, fits: Callable[[Device], bool]) -> Device | None:
        """The resting device of a target that fits and was leased longest ago."""
        return self._idle.first(target, fits)

    def changes(self) -> tuple[tuple[str, Register | None], ...]:
        """What has come, changed and ended since this was last asked, by name."""
        changed = [(name, self._devices.get(name)) for name in sorted(self._changed)]
        self._changed.clear()
        return tuple((name, device.registration if device else None) for name, device in changed)


def _require_same(known: Device, call: Register) -> None:
    """Nothing if the device of a name may register: it is the same one, and no earlier life."""
    name = call.device.name
    if not hmac.compare_digest(known.secret, call.secret):
        raise SettingsError(
            f"the name {name!r} is taken by a living device at {known.info.address}",
            "give every device a name of its own; one whose --folder is lost gets its name back"
            " some seconds after its end",
        )
    if call.device.epoch in known.retired_epochs:
        raise SettingsError(
            f"another device server has taken the name {name!r}",
            "give every device a name of its own",
        )
