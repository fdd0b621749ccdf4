"""The methods of both services as a table: path, records in and out, streaming, who may call.

Client and server take their types from here; a test holds it against the schemas' descriptors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from tilefarm.rpc import device_calls, device_wire, tracker_wire
from tilefarm.rpc.codec import Codec
from tilefarm.trust.access import FarmRole

_Request = TypeVar("_Request")
_Reply = TypeVar("_Reply")


@dataclass(frozen=True, slots=True)
class Method(Generic[_Request, _Reply]):
    """One RPC.

    Attributes:
        service, name: its path.
        request, reply: its records.
        roles: who may call it; nobody else.
        mutating: whether it leaves the server other than it was, a device's fence included; asked
            twice it then does what it does once.
        subject: what a request is about, noted in the audit as it arrives; None: it is not.
        outcome: what an answer gives, noted in the audit; None: it is not.
        sends_many, answers_many: which side streams.
        neighbours: whoever is on the server's own machine may call it without a token, where the
            server listens nowhere else, which is where it speaks no TLS.
    """

    service: str
    name: str
    request: Codec[_Request]
    reply: Codec[_Reply]
    roles: frozenset[FarmRole]
    mutating: bool
    subject: Callable[[_Request], str] | None = None
    outcome: Callable[[_Reply], str] | None = None
    sends_many: bool = False
    answers_many: bool = False
    neighbours: bool = False

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"


def _run_subject(call: device_calls.Run) -> str:
    return f"{call.job.artifact.hex} under {call.claim.lease_id}"


TRACKER: Final = "tilefarm.v1.TrackerService"
DEVICE: Final = "tilefarm.v1.DeviceService"

LONGEST_WORDS: Final = 300
"""Characters of a client's own words that the audit keeps."""

_DEVICE: Final = frozenset({FarmRole.DEVICE})
_SUBMIT: Final = frozenset({FarmRole.SUBMIT})
_ADMIN: Final = frozenset({FarmRole.ADMIN})
_SEE: Final = frozenset({FarmRole.READ, FarmRole.SUBMIT, FarmRole.ADMIN})

REGISTER: Final = Method(
    TRACKER,
    "Register",
    tracker_wire.REGISTER,
    tracker_wire.REGISTERED,
    _DEVICE,
    mutating=True,
    subject=lambda call: f"{call.device.name} at {call.device.address}",
)
HEARTBEAT: Final = Method(
    TRACKER,
    "Heartbeat",
    tracker_wire.HEARTBEAT,
    tracker_wire.HEARTBEAT_REPLY,
    _DEVICE,
    mutating=True,
)
DEREGISTER: Final = Method(
    TRACKER,
    "Deregister",
    tracker_wire.DEREGISTER,
    tracker_wire.DEREGISTERED,
    _DEVICE,
    mutating=True,
    subject=lambda call: call.name,
)
ACQUIRE: Final = Method(
    TRACKER,
    "Acquire",
    tracker_wire.ACQUIRE,
    tracker_wire.ACQUIRED,
    _SUBMIT,
    mutating=True,
    outcome=lambda reply: (
        f"{reply.lease.device.name} under {reply.lease.lease_id}" if reply.lease else "no device"
    ),
)
RENEW: Final = Method(
    TRACKER, "Renew", tracker_wire.RENEW, tracker_wire.RENEWED, _SUBMIT, mutating=True
)
RELEASE: Final = Method(
    TRACKER,
    "Release",
    tracker_wire.RELEASE,
    tracker_wire.RELEASED,
    _SUBMIT,
    mutating=True,
    subject=lambda call: (
        f"{call.lease_id}, its device lost: {call.why[:LONGEST_WORDS]}"
        if call.device_lost
        else call.lease_id
    ),
)
LIST_DEVICES: Final = Method(
    TRACKER, "ListDevices", tracker_wire.LIST_DEVICES, tracker_wire.DEVICES, _SEE, mutating=False
)
LIST_REFUSED_RUNS: Final = Method(
    TRACKER,
    "ListRefusedRuns",
    tracker_wire.LIST_REFUSED_RUNS,
    tracker_wire.LISTED_REFUSED_RUNS,
    _SEE,
    mutating=False,
)
DRAIN: Final = Method(
    TRACKER,
    "Drain",
    tracker_wire.DRAIN,
    tracker_wire.DRAINED,
    _ADMIN,
    mutating=True,
    subject=lambda call: call.name,
)
READMIT: Final = Method(
    TRACKER,
    "Readmit",
    tracker_wire.READMIT,
    tracker_wire.READMITTED,
    _ADMIN,
    mutating=True,
    subject=lambda call: call.name,
)

GET_CAPABILITIES: Final = Method(
    DEVICE,
    "GetCapabilities",
    device_wire.GET_CAPABILITIES,
    device_wire.CAPABILITIES,
    _SEE,
    mutating=False,
)
FIND_MISSING: Final = Method(
    DEVICE, "FindMissing", device_wire.FIND_MISSING, device_wire.MISSING, _SUBMIT, mutating=False
)
QUERY_WRITE: Final = Method(
    DEVICE, "QueryWrite", device_wire.QUERY_WRITE, device_wire.COMMITTED, _SUBMIT, mutating=True
)
WRITE: Final = Method(
    DEVICE, "Write", device_wire.CHUNK, device_wire.STORED, _SUBMIT, mutating=True, sends_many=True
)
LOAD_MODULE: Final = Method(
    DEVICE,
    "LoadModule",
    device_wire.LOAD_MODULE,
    device_wire.MODULE_VERDICT,
    _SUBMIT,
    mutating=True,
)
RUN: Final = Method(
    DEVICE,
    "Run",
    device_wire.RUN,
    device_wire.RUN_REPLY,
    _SUBMIT,
    mutating=True,
    subject=_run_subject,
)
RUN_BATCH: Final = Method(
    DEVICE,
    "RunBatch",
    device_wire.RUN_BATCH,
    device_wire.RUN_BATCH_REPLY,
    _SUBMIT,
    mutating=True,
    subject=lambda call: ", ".join(map(_run_subject, call.runs)),
)
CHECK: Final = Method(
    DEVICE, "Check", device_wire.CHECK, device_wire.CHECKED, _SUBMIT, mutating=True
)
READ: Final = Method(
    DEVICE, "Read", device_wire.READ, device_wire.PIECE, _SUBMIT, mutating=False, answers_many=True
)
