"""What a lease table knows, as records: for another table to go on from, and for a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilefarm.lease import Lease
from tilefarm.rpc.tracker_calls import Register

from device_server.tracker.shares import Claimant


@dataclass(frozen=True, slots=True, kw_only=True)
class AdministrativeState:
    """What is remembered of a device by name, whether or not it lives.

    Attributes:
        draining: why an admin took it out of service; empty if nobody did.
        quarantine: why the table did.
        losses: times in a row that it was lost, as far as they count; see `Standings`.
        lost_by: users whose word counts among them already.
        readmissions: how often somebody has put it back into service.
        readmitting: the device has not heard of the last time yet.
    """

    draining: str = ""
    quarantine: str = ""
    losses: int = 0
    lost_by: tuple[str, ...] = ()
    readmissions: int = 0
    readmitting: bool = False

    @property
    def serves(self) -> bool:
        """Whether it may be leased."""
        return not self.draining and not self.quarantine


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A lease, whose it is, and for which of their jobs, as it was wished for."""

    lease: Lease
    owner: str
    user: str
    request_id: str
    job: str = ""
    priority: int = 0

    @property
    def claimant(self) -> Claimant:
        """Whose share of the farm it is."""
        return Claimant(self.user, self.job or self.owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """Everything that a table knows.

    Attributes:
        devices: as they registered, without a fence: leases have theirs, and none is above the
            table's. They have their whole time to live again.
        left_seconds: of leases by id, when the table was last heard of; others have their whole
            time to live again. While there is no table, nobody can renew, and no time passes.
    """

    fence: int = 0
    devices: tuple[Register, ...] = ()
    leases: tuple[Holding, ...] = ()
    standings: tuple[tuple[str, AdministrativeState], ...] = ()
    left_seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChanges:
    """What became of a table since it was last asked, by names and ids; None: it is no more.

    `until` says when leases that were given or renewed run out, on the clock that says `seconds`.
    """

    fence: int
    seconds: float = 0.0
    devices: tuple[tuple[str, Register | None], ...] = ()
    leases: tuple[tuple[str, Holding | None], ...] = ()
    standings: tuple[tuple[str, AdministrativeState | None], ...] = ()
    until: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, state: TableState) -> TableChanges:
        """From nothing to a state."""
        return cls(
            fence=state.fence,
            devices=tuple((call.device.name, call) for call in state.devices),
            leases=tuple((holding.lease.lease_id, holding) for holding in state.leases),
            standings=state.standings,
            until=tuple(state.left_seconds.items()),
        )

    def __bool__(self) -> bool:
        return bool(self.devices or self.leases or self.standings or self.until)
