"""The methods of both services as a table: path, records in and out, streaming, who may call.

Client and server take their types from here; a test holds it against the schemas' descriptors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from tilefarm.rpc import device_calls, wire
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
    wire.REGISTER,
    wire.REGISTERED,
    _DEVICE,
    subject=lambda call: f"{call.device.name} at {call.device.address}",
)
HEARTBEAT: Final = Method(TRACKER, "Heartbeat", wire.HEARTBEAT, wire.HEARTBEAT_REPLY, _DEVICE)
DEREGISTER: Final = Method(
    TRACKER,
    "Deregister",
    wire.DEREGISTER,
    wire.DEREGISTERED,
    _DEVICE,
    subject=lambda call: call.name,
)
ACQUIRE: Final = Method(
    TRACKER,
    "Acquire",
    wire.ACQUIRE,
    wire.ACQUIRED,
    _SUBMIT,
    outcome=lambda reply: (
        f"{reply.lease.device.name} under {reply.lease.lease_id}" if reply.lease else "no device"
    ),
)
RENEW: Final = Method(TRACKER, "Renew", wire.RENEW, wire.RENEWED, _SUBMIT)
RELEASE: Final = Method(
    TRACKER,
    "Release",
    wire.RELEASE,
    wire.RELEASED,
    _SUBMIT,
    subject=lambda call: (
        f"{call.lease_id}, its device {'lost' if call.device_lost else 'rests'}:"
        f" {call.why[:LONGEST_WORDS]}"
        if call.device_lost or call.why
        else call.lease_id
    ),
)
LIST_DEVICES: Final = Method(TRACKER, "ListDevices", wire.LIST_DEVICES, wire.DEVICES, _SEE)
LIST_REFUSED_RUNS: Final = Method(
    TRACKER, "ListRefusedRuns", wire.LIST_REFUSED_RUNS, wire.LISTED_REFUSED_RUNS, _SEE
)
DRAIN: Final = Method(
    TRACKER, "Drain", wire.DRAIN, wire.DRAINED, _ADMIN, subject=lambda call: call.name
)
READMIT: Final = Method(
    TRACKER, "Readmit", wire.READMIT, wire.READMITTED, _ADMIN, subject=lambda call: call.name
)

GET_CAPABILITIES: Final = Method(
    DEVICE, "GetCapabilities", wire.GET_CAPABILITIES, wire.CAPABILITIES, _SEE
)
FIND_MISSING: Final = Method(DEVICE, "FindMissing", wire.FIND_MISSING, wire.MISSING, _SUBMIT)
QUERY_WRITE: Final = Method(DEVICE, "QueryWrite", wire.QUERY_WRITE, wire.COMMITTED, _SUBMIT)
WRITE: Final = Method(DEVICE, "Write", wire.CHUNK, wire.STORED, _SUBMIT, sends_many=True)
LOAD_MODULE: Final = Method(DEVICE, "LoadModule", wire.LOAD_MODULE, wire.MODULE_VERDICT, _SUBMIT)
RUN: Final = Method(DEVICE, "Run", wire.RUN, wire.RUN_REPLY, _SUBMIT, subject=_run_subject)
RUN_BATCH: Final = Method(
    DEVICE,
    "RunBatch",
    wire.RUN_BATCH,
    wire.RUN_BATCH_REPLY,
    _SUBMIT,
    subject=lambda call: ", ".join(map(_run_subject, call.runs)),
)
CHECK: Final = Method(DEVICE, "Check", wire.CHECK, wire.CHECKED, _SUBMIT)
READ: Final = Method(DEVICE, "Read", wire.READ, wire.PIECE, _SUBMIT, answers_many=True)
