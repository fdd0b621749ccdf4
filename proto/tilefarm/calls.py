"""What is said in each call between client, tracker and device: requests and replies as records."""

from __future__ import annotations

from dataclasses import dataclass

from tilefarm.digest import Digest
from tilefarm.lease import DeviceInfo, Lease
from tilefarm.measurement import Measurement, RunFailure, RunJob

PROTOCOL = 1
"""Version of the protocol's meaning; grows when an old client would misunderstand a new device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """A device introduces itself; `fence` is the highest that it has seen."""

    device: DeviceInfo
    fence: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The tracker expects a heartbeat every so often."""

    heartbeat_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRef:
    """One life of a device: heartbeats and deregistrations name it."""

    name: str
    epoch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReply:
    """Whether the tracker knows the device; if not, it registers again."""

    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquire:
    """A wish for a device of a target that has all `labels`."""

    request_id: str
    target: Digest
    labels: tuple[tuple[str, str], ...] = ()
    wait_seconds: float = 0.0
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquired:
    """A lease, or None if no fitting device came free in time."""

    lease: Lease | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Renew:
    """Keep this lease."""

    lease_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """The lease now lives that long."""

    ttl_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The lease is over; `device_lost` tells that its device stopped answering."""

    lease_id: str
    device_lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """A living device and the owner of its lease; empty when it is free."""

    device: DeviceInfo
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """All living devices, by name."""

    states: tuple[DeviceState, ...]


@dataclass(frozen=True, slots=True)
class Nothing:
    """A request or a reply that says no more than that it is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right under which a device is told to do something."""

    lease_id: str
    fence: int
    epoch: str

    @classmethod
    def of(cls, lease: Lease) -> Claim:
        return cls(lease_id=lease.lease_id, fence=lease.fence, epoch=lease.device.epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a device server is, in its own words."""

    protocol: int
    name: str
    target: Digest
    runtime: str
    sandbox: str
    epoch: str
    max_blob_nbytes: int


@dataclass(frozen=True, slots=True)
class Digests:
    """Blobs: those asked for, or those that are missing."""

    digests: tuple[Digest, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a blob that is uploaded; only a stream's first one carries the claim."""

    digest: Digest
    offset: int
    data: bytes
    finish: bool
    claim: Claim | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Bytes of the blobs that a stream has brought."""

    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadModule:
    """Verify this artifact."""

    claim: Claim
    artifact: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleVerdict:
    """Why an artifact may not be loaded; empty if it may."""

    rejection: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run this job; the same `request_id` gets the same answer."""

    claim: Claim
    request_id: str
    job: RunJob


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReply:
    """How a run ended. Outputs and the timeline stay in the device's store, to be read by digest.

    A measurement in `outcome` has neither; `queue_seconds` passed before the run began.
    """

    outcome: Measurement | RunFailure
    outputs: tuple[tuple[str, Digest], ...] = ()
    timeline: Digest | None = None
    queue_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Send the bytes of this blob."""

    digest: Digest


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a blob that is read, in order."""

    data: bytes
