"""The methods of both services as a table: path, records in and out, streaming or not.

Client and server take their types from here; a test holds it against the schemas' descriptors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from tilefarm import wire

_Request = TypeVar("_Request")
_Reply = TypeVar("_Reply")


@dataclass(frozen=True, slots=True)
class Method(Generic[_Request, _Reply]):
    """One RPC. `sends_many` and `answers_many` say which side streams."""

    service: str
    name: str
    request: wire.Codec[_Request]
    reply: wire.Codec[_Reply]
    sends_many: bool = False
    answers_many: bool = False

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"


TRACKER: Final = "tilefarm.v1.TrackerService"
DEVICE: Final = "tilefarm.v1.DeviceService"

REGISTER: Final = Method(TRACKER, "Register", wire.REGISTER, wire.REGISTERED)
HEARTBEAT: Final = Method(TRACKER, "Heartbeat", wire.HEARTBEAT, wire.HEARTBEAT_REPLY)
DEREGISTER: Final = Method(TRACKER, "Deregister", wire.DEREGISTER, wire.DEREGISTERED)
ACQUIRE: Final = Method(TRACKER, "Acquire", wire.ACQUIRE, wire.ACQUIRED)
RENEW: Final = Method(TRACKER, "Renew", wire.RENEW, wire.RENEWED)
RELEASE: Final = Method(TRACKER, "Release", wire.RELEASE, wire.RELEASED)
LIST_DEVICES: Final = Method(TRACKER, "ListDevices", wire.LIST_DEVICES, wire.DEVICES)

GET_CAPABILITIES: Final = Method(
    DEVICE, "GetCapabilities", wire.GET_CAPABILITIES, wire.CAPABILITIES
)
FIND_MISSING: Final = Method(DEVICE, "FindMissing", wire.FIND_MISSING, wire.MISSING)
WRITE: Final = Method(DEVICE, "Write", wire.CHUNK, wire.STORED, sends_many=True)
LOAD_MODULE: Final = Method(DEVICE, "LoadModule", wire.LOAD_MODULE, wire.MODULE_VERDICT)
RUN: Final = Method(DEVICE, "Run", wire.RUN, wire.RUN_REPLY)
READ: Final = Method(DEVICE, "Read", wire.READ, wire.PIECE, answers_many=True)
