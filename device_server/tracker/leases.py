"""Which devices live and who may use them: the tracker's decisions, without network or threads.

Time comes from a clock that is given; every operation first forgets what has run out by then. One
fence counter serves all devices, so a fence grows with every lease whatever happens to a device.
An operation looks at what it is about, never at all that there is: a farm may be large.
"""

from __future__ import annotations

from collections.abc import ValuesView
from typing import Final

from tilefarm.clock import Clock
from tilefarm.errors import ForbiddenError, LeaseError
from tilefarm.lease import Lease
from tilefarm.names import IdSource
from tilefarm.rpc.tracker_calls import (
    Acquire,
    DeviceState,
    Heartbeat,
    HeartbeatReply,
    RefusedRun,
    Register,
)

from device_server.tracker.administrative_states import AdministrativeStates
from device_server.tracker.device_states import states_of
from device_server.tracker.entries import Device, Held
from device_server.tracker.granting import holding_of
from device_server.tracker.lease_index import LeaseIndex
from device_server.tracker.limits import TableLimits, enough
from device_server.tracker.registry import Registry
from device_server.tracker.shares import Shares
from device_server.tracker.table_state import Holding, TableChanges, TableState
from device_server.tracker.wait_queue import share_of

_HEARTBEATS: Final = 2
"""Of a device that was given back lost or resting, until its word counts: it makes one when the one
before was answered, so the second one was made later."""


class LeaseTable:
    """Devices and leases. At any time at most one lease lives per device.

    Args:
        clock: monotonic seconds decide.
        ids: names leases.
        limits: times to live, shares.
        fence: a number below which no lease's fence was given by an earlier table.
    """

    def __init__(
        self, clock: Clock, ids: IdSource, *, limits: TableLimits | None = None, fence: int = 0
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._limits = limits or TableLimits()
        self._fence = fence
        self._devices = Registry(self._limits.device_ttl_seconds)
        self._leases = LeaseIndex()
        self._standings = AdministrativeStates(
            self._limits.losses, lambda name: self._devices.get(name) is not None
        )
        self._expired: list[tuple[str, str]] = []
        self._freed = False

    @property
    def limits(self) -> TableLimits:
        return self._limits

    @property
    def state(self) -> TableState:
        """What another table needs to go on from here."""
        now = self._clock.seconds()
        return TableState(
            fence=self._fence,
            devices=tuple(device.registration for device in self._devices),
            leases=tuple(self._leases),
            standings=self._standings.rows(),
            left_seconds={h.holding.lease.lease_id: h.until - now for h in self._leases.held},
        )

    def changes(self) -> TableChanges:
        """What is not any more as it was when this was last asked."""
        return TableChanges(
            fence=self._fence,
            seconds=self._clock.seconds(),
            devices=self._devices.changes(),
            leases=self._leases.changes(),
            standings=self._standings.changes(),
            until=self._leases.until(),
        )

    def freed(self) -> bool:
        """Whether a device may have become free since this was last asked."""
        freed, self._freed = self._freed, False
        return freed

    def restore(self, state: TableState) -> None:
        """Go on from where another table was; this one has done nothing yet."""
        self._fence = max(self._fence, state.fence)
        self._standings.restore(dict(state.standings))
        for call in state.devices:
            self._rest(self._devices.add(call, self._clock.seconds()))
        for holding in state.leases:
            left_seconds = state.left_seconds.get(holding.lease.lease_id)
            self._hold(self._devices.require(holding.lease.device.name), holding, left_seconds)

    @property
    def fence(self) -> int:
        """The highest so far, of leases and of what devices have seen."""
        return self._fence

    def register(self, call: Register) -> None:
        """Make a device known, or known again; a new epoch voids the lease of the old one.

        Raises:
            SettingsError: a living device has its name, or a server that started later.
            BusyError: there is no place for another one.
        """
        self._lapse()
        self._fence = max(self._fence, call.fence)
        self._standings.registered(call.device.name)
        known, now = self._devices.known(call), self._clock.seconds()
        if known and known.info.epoch == call.device.epoch:
            self._devices.change(known, call.device)
            self._devices.hear(known, now)
            return
        if known:
            self._forget(known)
        self._rest(self._devices.add(call, now, after=known))

    def heartbeat(self, call: Heartbeat) -> HeartbeatReply:
        """A device says that it lives, and why it may not be leased if so."""
        self._lapse()
        device, now = self._devices.in_epoch(call.name, call.epoch), self._clock.seconds()
        if device is None:
            return HeartbeatReply(known=False)
        self._devices.hear(device, now)
        self._hear_resting(device, call.resting)
        if call.usage is not None:
            device.pace.hear(call.usage)
        if call.refused is not None:
            device.refused.hear(call.refused, now)
        if call.quarantine:
            self._standings.quarantine(call.name, call.quarantine)
        return HeartbeatReply(
            known=True,
            quarantined=bool(self._standings.of(call.name).quarantine),
            readmissions=self._standings.tell_readmissions(call.name),
            refused_edition=device.refused.edition,
            ended_fence=device.fence - 1 if device.lease_id else self._fence,
        )

    def deregister(self, name: str, epoch: str) -> None:
        """A device says that it ends."""
        self._lapse()
        device = self._devices.in_epoch(name, epoch)
        if device:
            self._forget(device)

    def acquire(self, wish: Acquire, user: str = "") -> Lease | None:
        """A lease of the fitting free device that was leased longest ago; None if there is none.

        The same request id of the same user gets the same lease for as long as it lives.

        Raises:
            BusyError: the user holds as many leases as one may.
        """
        given = self.given(wish, user)
        if given is not None:
            return given
        share = share_of(wish, user)
        if self.has_enough(share):
            raise enough(share, self._leases.counts[share])
        device = self._devices.first(wish.target, lambda device: self._fits(device, wish))
        return None if device is None else self._grant(device, wish, user)

    def given(self, wish: Acquire, user: str = "") -> Lease | None:
        """The lease that a user's request was given already, if it lives."""
        self._lapse()
        known = self._leases.asked_for(wish.request_id, user)
        return known.holding.lease if known else None

    def has_enough(self, share: str) -> bool:
        """Whether somebody holds as many leases as one may."""
        limit = self._limits.leases_per_user
        return limit is not None and self._leases.counts.get(share, 0) >= limit

    def renew(self, lease_id: str, user: str = "", *, lends: bool = False) -> float:
        """Extends a user's lease; gives its time to live in seconds.

        Args:
            lease_id: the lease.
            user: whose it is.
            lends: they give it back when somebody with a fairer claim wants its device.

        Raises:
            LeaseError: no such lease lives.
            ForbiddenError: it is somebody else's.
        """
        self._lapse()
        held = self._of(lease_id, user)
        if held is None:
            raise LeaseError(
                f"lease {lease_id} is unknown, expired, or its device is gone", "lease anew"
            )
        self._leases.renew(held, self._clock.seconds())
        held.lends = lends
        return held.holding.lease.ttl_seconds

    def release(
        self, lease_id: str, user: str = "", *, device_lost: bool = False, why: str = ""
    ) -> None:
        """Ends a user's lease; one that does not live is none to end.

        A device that one user after the other loses is put into quarantine, see
        `AdministrativeStates`.

        Args:
            lease_id: the lease.
            user: whose it is.
            device_lost: its device did not answer: nobody gets it before it says that it is well.
            why: what the client saw of that; of a device that was not lost: why it rests. That is
                held against nobody, and nobody gets it before it says otherwise.

        Raises:
            ForbiddenError: it is somebody else's.
        """
        self._lapse()
        held = self._of(lease_id, user)
        if held is None:
            return
        self._end(held)
        name = held.holding.lease.device.name
        device = self._devices.require(name)
        if device_lost or why:
            device.unheard = _HEARTBEATS
        if device_lost:
            device.lost = True
            self._standings.lost(name, user=user, owner=held.holding.owner, why=why)
        elif why:
            device.resting = why
        else:
            self._standings.given_back(name)

    def drain(self, name: str, why: str) -> None:
        """Takes a device out of service; who holds it and lends is asked for it.

        Raises:
            NoDeviceError: no such device lives.
        """
        self._lapse()
        self._devices.require(name)
        self._standings.drain(name, why or "by an admin")

    def draining(self, lease_id: str) -> bool:
        """Whether the device of a lease is being taken out of service."""
        held = self._leases.get(lease_id)
        return bool(held and self._standings.of(held.holding.lease.device.name).draining)

    def readmit(self, name: str) -> None:
        """Puts a device back into service, whatever took it out.

        Raises:
            NoDeviceError: no such device lives.
        """
        self._lapse()
        self._devices.require(name).refused.forgive()
        self._standings.readmit(name)
        self._freed = True

    def states(self) -> tuple[DeviceState, ...]:
        """All living devices by name, with their use."""
        self._lapse()
        return states_of(self._devices, self._standings, self._leases, self._clock.seconds())

    def refused_runs(self, name: str) -> tuple[RefusedRun, ...]:
        """The runs that a device refuses.

        Raises:
            NoDeviceError: no such device lives.
        """
        self._lapse()
        return self._devices.require(name).refused.rows(self._clock.seconds())

    def shares(self) -> Shares:
        """What every user and every job holds of the farm."""
        self._lapse()
        return self._leases.shares

    def held(self) -> ValuesView[Held]:
        """All leases that live."""
        self._lapse()
        return self._leases.held

    def would_serve(self, held: Held, wish: Acquire) -> bool:
        """Whether the device of a lease, if it were free, could be leased for a wish."""
        device = self._devices.get(held.holding.lease.device.name)
        return device is not None and self._fits(device, wish)

    def expire(self) -> tuple[tuple[str, str], ...]:
        """Forgets what has run out: ("device", name) and ("lease", id) of each, told once."""
        self._lapse()
        expired, self._expired = tuple(self._expired), []
        return expired

    def _lapse(self) -> None:
        now = self._clock.seconds()
        for device in self._devices.over(now):
            if device.lease_id or device.lost:
                self._standings.silent(device.info.name, told=device.lost)
            self._forget(device)
            self._expired.append(("device", device.info.name))
        for held in self._leases.over(now):
            self._end(held)
            self._expired.append(("lease", held.holding.lease.lease_id))

    def _hear_resting(self, device: Device, resting: str) -> None:
        """A device says why it cannot run, empty if it can."""
        device.unheard = max(0, device.unheard - 1)
        if resting or not device.unheard:
            self._freed |= device.lost or bool(device.resting)
            device.lost, device.resting = False, resting

    def _of(self, lease_id: str, user: str) -> Held | None:
        held = self._leases.get(lease_id)
        if held and held.holding.user != user:
            raise ForbiddenError(
                f"lease {lease_id} is that of {held.holding.user or 'the whole farm'}",
                "renew and release leases of your own",
            )
        return held

    def _grant(self, device: Device, wish: Acquire, user: str) -> Lease:
        self._fence += 1
        holding = holding_of(
            device,
            wish,
            user,
            lease_id=self._ids.fresh("lease"),
            fence=self._fence,
            ttl_seconds=self._limits.lease_ttl_seconds,
        )
        self._hold(device, holding)
        return holding.lease

    def _hold(self, device: Device, holding: Holding, left_seconds: float | None = None) -> None:
        device.lease_id, device.fence = holding.lease.lease_id, holding.lease.fence
        self._leases.add(holding, self._clock.seconds(), left_seconds)

    def _end(self, held: Held) -> None:
        """A lease is over; its device rests, if it is still there."""
        self._leases.end(held)
        lease = held.holding.lease
        device = self._devices.get(lease.device.name)
        if device and device.lease_id == lease.lease_id:
            device.lease_id = ""
            self._rest(device)

    def _rest(self, device: Device) -> None:
        self._devices.rest(device)
        self._freed = True

    def _forget(self, device: Device) -> None:
        """A device is no more, nor is its lease."""
        self._devices.end(device)
        held = self._leases.get(device.lease_id)
        if held:
            self._end(held)

    def _fits(self, device: Device, wish: Acquire) -> bool:
        """Whether an idle device may be leased to whoever has that wish."""
        if device.lost or device.resting or not self._standings.of(device.info.name).serves:
            return False
        info = device.info
        return info.target == wish.target and info.has(wish.labels)
