"""What client, device and tracker say to each other: requests and replies as records."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilefarm.digest import Digest
from tilefarm.lease import DeviceInfo, Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """A device introduces itself.

    `fence` is the highest that it has seen; `secret` proves that it is the same one after a
    restart, and is the key of its leases' tickets.
    """

    device: DeviceInfo
    fence: int = 0
    secret: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The tracker expects a heartbeat every so often."""

    heartbeat_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRef:
    """One life of a device: deregistrations name it."""

    name: str
    epoch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a device did in `up_seconds`: `runs` that ended, and how long something ran on it."""

    runs: int = 0
    busy_seconds: float = 0.0
    up_seconds: float = 0.0

    def since(self, earlier: Usage) -> Usage:
        """What it did since an earlier moment of the same life."""
        return Usage(
            runs=self.runs - earlier.runs,
            busy_seconds=self.busy_seconds - earlier.busy_seconds,
            up_seconds=self.up_seconds - earlier.up_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRun:
    """Runs of an artifact's entry that crashed a device so often that it begins none any more.

    They end with `status`, as the last of the `crashes` did; `why` says how that was. They are
    refused for `refused_seconds`.
    """

    artifact: Digest
    entry: str
    crashes: int
    status: str
    why: str
    refused_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRuns:
    """All that a device refuses; `edition` grows with every change, and is 0 before the first."""

    edition: int = 0
    runs: tuple[RefusedRun, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A device lives; why it may not be leased: while it says so, until somebody readmits it.

    `usage` is that of its life; None where an older server does not say it. `refused` is said when
    the tracker has another edition; None: it has this one.
    """

    name: str
    epoch: str
    resting: str = ""
    quarantine: str = ""
    usage: Usage | None = None
    refused: RefusedRuns | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReply:
    """Whether the tracker knows the device; if not, it registers again.

    `quarantined` tells that nobody may lease it before somebody readmits it; `readmissions`, how
    often somebody did, until the device has heard of it, then 0; `refused_edition`, which one the
    tracker knows of the runs that it refuses, None where an older one does not want to know. No
    lease up to `ended_fence` lives any more; None where an older one does not say.
    """

    known: bool
    quarantined: bool = False
    readmissions: int = 0
    refused_edition: int | None = None
    ended_fence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquire:
    """A wish for a device of a target that has all `labels`; higher priorities are served first.

    `job` is one word for all that a run leases: the jobs of a user have equal shares.
    """

    request_id: str
    target: Digest
    labels: tuple[tuple[str, str], ...] = ()
    wait_seconds: float = 0.0
    owner: str = ""
    priority: int = 0
    job: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquired:
    """A lease, or None if no fitting device came free in time."""

    lease: Lease | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Renew:
    """Keep this lease; who `lends` gives it back when it is wanted: for another, or drained."""

    lease_id: str
    lends: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """The lease now lives that long; its device is wanted in so many seconds, or by nobody.

    A client that lends gives a device that is wanted now back after the run under way; if it is
    wanted later, it renews the lease then.
    """

    ttl_seconds: float
    wanted_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The lease is over; `device_lost` tells that its device stopped answering, `why` how.

    If it was not lost, `why` is the reason for which it says that it rests; empty if it is well.
    """

    lease_id: str
    device_lost: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """A living device and its use.

    Attributes:
        device: the device.
        owner: what it is leased for, in the words of who leased it; empty if it is free.
        user: who leased it; empty on a farm with one secret.
        leased_seconds: since when; 0 if it is free.
        draining: why an admin took it out of service; empty if nobody did.
        quarantine: why the tracker did, or the device itself.
        resting: why the device says that it cannot run for the time being.
        usage: what it did since its server began; None where that does not say it.
        lately: what it did in the last seconds.
        refused: how many runs it refuses because they crashed it.
    """

    device: DeviceInfo
    owner: str = ""
    user: str = ""
    leased_seconds: float = 0.0
    draining: str = ""
    quarantine: str = ""
    resting: str = ""
    usage: Usage | None = None
    lately: Usage | None = None
    refused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Somebody who waits for a device."""

    owner: str
    user: str
    priority: int
    waited_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """All living devices by name, and who waits for one, in the order of service."""

    states: tuple[DeviceState, ...]
    waiting: tuple[Waiting, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRefusedRuns:
    """Which runs does this device refuse?"""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRefusedRuns:
    """Those that it refuses, the last one to crash at the end."""

    runs: tuple[RefusedRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Take a device out of service."""

    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Readmit:
    """Put a device back into service."""

    name: str
