"""Which devices live and who may use them: the tracker's decisions, without network or threads.

Time comes from a clock that is given; every operation first forgets what has run out by then. One
fence counter serves all devices, so a fence grows with every lease whatever happens to a device.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilefarm.calls import Acquire, DeviceState
from tilefarm.clock import Clock
from tilefarm.digest import Digest
from tilefarm.errors import LeaseError, SettingsError
from tilefarm.lease import DeviceInfo, Lease
from tilefarm.names import IdSource


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLimits:
    """How long silence is forgiven: that of a device, and that of a lease's holder."""

    device_ttl_seconds: float = 10.0
    lease_ttl_seconds: float = 30.0


@dataclass(slots=True)
class _Device:
    info: DeviceInfo
    alive_until: float
    fence: int = 0
    lease_id: str = ""
    # A client saw it not answering; cleared by its next heartbeat.
    suspect: bool = False
    retired_epochs: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Held:
    lease: Lease
    owner: str
    request_id: str
    expires_at: float


class LeaseTable:
    """Devices and leases. At any time at most one lease lives per device.

    Args:
        clock: monotonic seconds decide.
        ids: names leases.
        limits: times to live.
        fence: a number below which no lease's fence was given by an earlier table.
    """

    def __init__(
        self, clock: Clock, ids: IdSource, *, limits: TableLimits | None = None, fence: int = 0
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._limits = limits or TableLimits()
        self._fence = fence
        self._devices: dict[str, _Device] = {}
        self._held: dict[str, _Held] = {}

    @property
    def limits(self) -> TableLimits:
        return self._limits

    def register(self, info: DeviceInfo, *, fence: int = 0) -> None:
        """Make a device known, or known again; a new epoch voids the lease of the old one.

        Args:
            info: the device.
            fence: the highest fence that it has seen.

        Raises:
            SettingsError: its name was taken over by a server that started later.
        """
        self.expire()
        self._fence = max(self._fence, fence)
        known = self._devices.get(info.name)
        if known and info.epoch in known.retired_epochs:
            raise SettingsError(
                f"another device server has taken the name {info.name!r}",
                "give every device a name of its own",
            )
        if known and known.info.epoch == info.epoch:
            known.info = info
            known.alive_until = self._alive_until()
            return
        retired = known.retired_epochs | {known.info.epoch} if known else set()
        if known:
            self._held.pop(known.lease_id, None)
        self._devices[info.name] = _Device(
            info, self._alive_until(), retired_epochs=retired, fence=known.fence if known else 0
        )

    def heartbeat(self, name: str, epoch: str) -> bool:
        """A device says that it lives; False if it must register first."""
        self.expire()
        device = self._device(name, epoch)
        if device is None:
            return False
        device.alive_until = self._alive_until()
        device.suspect = False
        return True

    def deregister(self, name: str, epoch: str) -> None:
        """A device says that it ends."""
        self.expire()
        if self._device(name, epoch):
            self._forget(name)

    def acquire(self, wish: Acquire) -> Lease | None:
        """A lease of the fitting free device that was leased longest ago; None if there is none.

        The same request id gets the same lease for as long as it lives.
        """
        self.expire()
        for held in self._held.values():
            if wish.request_id and held.request_id == wish.request_id:
                return held.lease
        free = [d for d in self._devices.values() if not d.lease_id and not d.suspect]
        fitting = [d for d in free if _fits(d.info, wish.target, wish.labels)]
        if not fitting:
            return None
        return self._grant(min(fitting, key=lambda d: (d.fence, d.info.name)), wish)

    def renew(self, lease_id: str) -> float:
        """Extends a lease; gives its time to live in seconds.

        Raises:
            LeaseError: no such lease lives.
        """
        self.expire()
        held = self._held.get(lease_id)
        if held is None:
            raise LeaseError(
                f"lease {lease_id} is unknown, expired, or its device is gone", "lease anew"
            )
        held.expires_at = self._clock.seconds() + held.lease.ttl_seconds
        return held.lease.ttl_seconds

    def release(self, lease_id: str, *, device_lost: bool = False) -> None:
        """Ends a lease; one that does not live is none to end.

        Args:
            lease_id: the lease.
            device_lost: its device did not answer: nobody gets it before its next heartbeat.
        """
        self.expire()
        held = self._held.pop(lease_id, None)
        if held is None:
            return
        device = self._devices[held.lease.device.name]
        device.lease_id = ""
        device.suspect = device_lost

    def states(self) -> tuple[DeviceState, ...]:
        """All living devices by name, with the owners of their leases."""
        self.expire()
        return tuple(
            DeviceState(device=device.info, owner=self._owner(device))
            for _, device in sorted(self._devices.items())
        )

    def expire(self) -> tuple[tuple[str, str], ...]:
        """Forgets what has run out: ("device", name) and ("lease", id) of each, for the log."""
        now = self._clock.seconds()
        dead = [name for name, device in self._devices.items() if device.alive_until <= now]
        for name in dead:
            self._forget(name)
        over = [lease_id for lease_id, held in self._held.items() if held.expires_at <= now]
        for lease_id in over:
            held = self._held.pop(lease_id)
            self._devices[held.lease.device.name].lease_id = ""
        return tuple(("device", name) for name in dead) + tuple(("lease", i) for i in over)

    def _grant(self, device: _Device, wish: Acquire) -> Lease:
        self._fence += 1
        lease = Lease(
            lease_id=self._ids.fresh("lease"),
            device=device.info,
            fence=self._fence,
            ttl_seconds=self._limits.lease_ttl_seconds,
        )
        device.fence, device.lease_id = lease.fence, lease.lease_id
        expires_at = self._clock.seconds() + lease.ttl_seconds
        self._held[lease.lease_id] = _Held(lease, wish.owner, wish.request_id, expires_at)
        return lease

    def _device(self, name: str, epoch: str) -> _Device | None:
        device = self._devices.get(name)
        return device if device and device.info.epoch == epoch else None

    def _owner(self, device: _Device) -> str:
        held = self._held.get(device.lease_id)
        return (held.owner or held.lease.lease_id) if held else ""

    def _forget(self, name: str) -> None:
        self._held.pop(self._devices.pop(name).lease_id, None)

    def _alive_until(self) -> float:
        return self._clock.seconds() + self._limits.device_ttl_seconds


def _fits(info: DeviceInfo, target: Digest, labels: tuple[tuple[str, str], ...]) -> bool:
    return info.target == target and set(labels) <= set(info.labels)
