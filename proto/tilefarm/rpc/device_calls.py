"""What clients and a device say to each other: requests and replies as records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tilefarm.digest import Digest
from tilefarm.lease import Lease
from tilefarm.measurement import Measurement, RunFailure, RunJob, TimelineEvent
from tilefarm.watch.trace_context import is_name

MOST_RUNS: Final = 64
"""In one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right under which a device is told to do something."""

    lease_id: str
    fence: int
    epoch: str
    ticket: bytes = b""

    @classmethod
    def of(cls, lease: Lease) -> Claim:
        return cls(
            lease_id=lease.lease_id,
            fence=lease.fence,
            epoch=lease.device.epoch,
            ticket=lease.ticket,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a device server is, in its own words.

    `protocol` and `protocol_minor` are the version of the protocol that it speaks. `spoiled_fence`
    is the highest fence under which it was found not to be right; 0 if there is none, or it is of a
    version that does not say.
    """

    protocol: int
    name: str
    target: Digest
    runtime: str
    sandbox: str
    epoch: str
    max_blob_nbytes: int
    self_test: str = ""
    protocol_minor: int = 0
    spoiled_fence: int = 0


@dataclass(frozen=True, slots=True)
class Digests:
    """Blobs: those asked for, or those that are missing."""

    digests: tuple[Digest, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWrite:
    """How much of a blob has arrived?"""

    claim: Claim
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """So many bytes of a blob are here; its upload goes on from there."""

    nbytes: int


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
    """Verify this artifact; `signature` proves that somebody of the farm made it."""

    claim: Claim
    artifact: Digest
    signature: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleVerdict:
    """Why an artifact may not be loaded; empty if it may."""

    rejection: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run this job; the same `request_id` gets the same answer.

    `signature` proves that somebody of the farm made the artifact. `blobs` are contents that the
    job names, as far as they are few and the device may lack them. `candidate` is what logs and
    traces call it within a batch; a call of its own says that in its metadata.

    Raises:
        ValueError: no log may hold that name.
    """

    claim: Claim
    request_id: str
    job: RunJob
    signature: bytes = b""
    blobs: tuple[bytes, ...] = field(default=(), repr=False)
    candidate: str = ""

    def __post_init__(self) -> None:
        if self.candidate and not is_name(self.candidate):
            raise ValueError(f"a candidate {self.candidate[:64]!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReply:
    """How a run ended. Outputs and the timeline stay in the device's store, to be read by digest.

    A measurement in `outcome` has neither on its way; whoever reads them puts them there.
    `queue_seconds` passed before the run began.
    `unchecked` runs, this one included, followed the known kernel's last right answer. `served`
    times it within a batch, see `served.Served`; empty if nobody traces.
    """

    outcome: Measurement | RunFailure
    outputs: tuple[tuple[str, Digest], ...] = ()
    timeline: Digest | None = None
    queue_seconds: float = 0.0
    unchecked: int = 0
    served: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class RunBatch:
    """Run these jobs, one after the other.

    Raises:
        ValueError: they are none, or too many.
    """

    runs: tuple[Run, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.runs) <= MOST_RUNS:
            raise ValueError(f"{len(self.runs)} runs, not 1..{MOST_RUNS}")


@dataclass(frozen=True, slots=True)
class RunBatchReply:
    """How the first of them ended, one at least; the others were not begun."""

    replies: tuple[RunReply, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """What a run's instructions did when; it is kept as a blob."""

    events: tuple[TimelineEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Confirm what ran under this claim: let the known kernel run."""

    claim: Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Send the bytes of this blob."""

    digest: Digest


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a blob that is read, in order."""

    data: bytes
