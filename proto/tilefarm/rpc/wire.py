"""Records to messages and back, adjacent: the only file that touches generated messages.

Decoding raises ValueError on whatever is not a record: a digest of another length, an unspecified
enum, an outcome that is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Final, Generic, TypeVar

from google.protobuf.message import DecodeError, Message

from tilefarm.digest import Digest
from tilefarm.lease import DeviceInfo, Lease
from tilefarm.measurement import (
    BufferSpec,
    Counters,
    Measurement,
    Role,
    RunFailure,
    RunJob,
    Status,
    TimelineEvent,
)
from tilefarm.rpc import calls
from tilefarm.v1 import device_pb2 as dev
from tilefarm.v1 import tracker_pb2 as trk

Labels = tuple[tuple[str, str], ...]

STATUSES: Final[Mapping[Status, dev.Status]] = {
    Status.OK: dev.STATUS_OK,
    Status.COMPILE_ERROR: dev.STATUS_COMPILE_ERROR,
    Status.COMPILE_CRASH: dev.STATUS_COMPILE_CRASH,
    Status.COMPILE_TIMEOUT: dev.STATUS_COMPILE_TIMEOUT,
    Status.VERIFY_REJECTED: dev.STATUS_VERIFY_REJECTED,
    Status.LOAD_ERROR: dev.STATUS_LOAD_ERROR,
    Status.RUN_CRASH: dev.STATUS_RUN_CRASH,
    Status.RUN_TIMEOUT: dev.STATUS_RUN_TIMEOUT,
    Status.WRONG_RESULT: dev.STATUS_WRONG_RESULT,
    Status.RESOURCE_EXCEEDED: dev.STATUS_RESOURCE_EXCEEDED,
    Status.DEVICE_LOST: dev.STATUS_DEVICE_LOST,
    Status.CANCELLED: dev.STATUS_CANCELLED,
    Status.INFRA_ERROR: dev.STATUS_INFRA_ERROR,
}
ROLES: Final[Mapping[Role, dev.Role]] = {
    Role.CONSTANT: dev.ROLE_CONSTANT,
    Role.INPUT: dev.ROLE_INPUT,
    Role.OUTPUT: dev.ROLE_OUTPUT,
    Role.SCRATCH: dev.ROLE_SCRATCH,
}
_STATUS_OF: Final = {number: status for status, number in STATUSES.items()}
_ROLE_OF: Final = {number: role for role, number in ROLES.items()}

_K = TypeVar("_K")
_V = TypeVar("_V")
_T = TypeVar("_T")


def _known(table: Mapping[_K, _V], number: _K) -> _V:
    try:
        return table[number]
    except KeyError:
        raise ValueError(f"no such enum value: {number}") from None


def _digest_to_wire(digest: Digest | None) -> bytes:
    return bytes.fromhex(digest.hex) if digest else b""


def _digest_from_wire(content: bytes) -> Digest:
    return Digest(content.hex())


def _optional_digest_from_wire(content: bytes) -> Digest | None:
    return _digest_from_wire(content) if content else None


def _labels_to_wire(labels: Labels) -> list[trk.Label]:
    return [trk.Label(key=key, value=value) for key, value in labels]


def _labels_from_wire(messages: Iterable[trk.Label]) -> Labels:
    return tuple((label.key, label.value) for label in messages)


def _device_to_wire(device: DeviceInfo) -> trk.DeviceInfo:
    return trk.DeviceInfo(
        name=device.name,
        address=device.address,
        target=_digest_to_wire(device.target),
        runtime=device.runtime,
        sandbox=device.sandbox,
        epoch=device.epoch,
        labels=_labels_to_wire(device.labels),
        self_test=device.self_test,
    )


def _device_from_wire(message: trk.DeviceInfo) -> DeviceInfo:
    return DeviceInfo(
        name=message.name,
        address=message.address,
        target=_digest_from_wire(message.target),
        runtime=message.runtime,
        sandbox=message.sandbox,
        epoch=message.epoch,
        labels=_labels_from_wire(message.labels),
        self_test=message.self_test,
    )


def _lease_to_wire(lease: Lease) -> trk.Lease:
    return trk.Lease(
        lease_id=lease.lease_id,
        device=_device_to_wire(lease.device),
        fence=lease.fence,
        ttl_seconds=lease.ttl_seconds,
        ticket=lease.ticket,
    )


def _lease_from_wire(message: trk.Lease) -> Lease:
    return Lease(
        lease_id=message.lease_id,
        device=_device_from_wire(message.device),
        fence=message.fence,
        ttl_seconds=message.ttl_seconds,
        ticket=message.ticket,
    )


def _claim_to_wire(claim: calls.Claim) -> dev.Claim:
    return dev.Claim(
        lease_id=claim.lease_id, fence=claim.fence, epoch=claim.epoch, ticket=claim.ticket
    )


def _claim_from_wire(message: dev.Claim) -> calls.Claim:
    return calls.Claim(
        lease_id=message.lease_id,
        fence=message.fence,
        epoch=message.epoch,
        ticket=message.ticket,
    )


def _buffer_to_wire(buffer: BufferSpec) -> dev.BufferSpec:
    return dev.BufferSpec(
        name=buffer.name,
        role=ROLES[buffer.role],
        nbytes=buffer.nbytes,
        content=_digest_to_wire(buffer.content),
        expected=_digest_to_wire(buffer.expected),
        fetch=buffer.fetch,
    )


def _buffer_from_wire(message: dev.BufferSpec) -> BufferSpec:
    return BufferSpec(
        name=message.name,
        role=_known(_ROLE_OF, message.role),
        nbytes=message.nbytes,
        content=_optional_digest_from_wire(message.content),
        expected=_optional_digest_from_wire(message.expected),
        fetch=message.fetch,
    )


def _job_to_wire(job: RunJob) -> dev.RunJob:
    return dev.RunJob(
        artifact=_digest_to_wire(job.artifact),
        entry=job.entry,
        buffers=map(_buffer_to_wire, job.buffers),
        samples=job.samples,
        repeats=job.repeats,
        timeout_seconds=job.timeout_seconds,
        timeline=job.timeline,
    )


def _job_from_wire(message: dev.RunJob) -> RunJob:
    return RunJob(
        artifact=_digest_from_wire(message.artifact),
        entry=message.entry,
        buffers=tuple(map(_buffer_from_wire, message.buffers)),
        samples=message.samples,
        repeats=message.repeats,
        timeout_seconds=message.timeout_seconds,
        timeline=message.timeline,
    )


def _counters_to_wire(counters: Counters) -> dev.Counters:
    return dev.Counters(**asdict(counters))


def _counters_from_wire(message: dev.Counters) -> Counters:
    return Counters(**{name: getattr(message, name) for name in Counters.__dataclass_fields__})


def _measurement_to_wire(measurement: Measurement) -> dev.Measurement:
    """Everything but outputs and timeline, which travel as blobs."""
    return dev.Measurement(
        artifact=_digest_to_wire(measurement.artifact),
        device=measurement.device,
        counters=_counters_to_wire(measurement.counters),
        seconds=measurement.seconds,
        sample_cycles=measurement.sample_cycles,
        load_seconds=measurement.load_seconds,
        run_seconds=measurement.run_seconds,
    )


def _measurement_from_wire(message: dev.Measurement) -> Measurement:
    return Measurement(
        artifact=_digest_from_wire(message.artifact),
        device=message.device,
        counters=_counters_from_wire(message.counters),
        seconds=tuple(message.seconds),
        sample_cycles=tuple(message.sample_cycles),
        load_seconds=message.load_seconds,
        run_seconds=message.run_seconds,
    )


def _failure_to_wire(failure: RunFailure) -> dev.RunFailure:
    return dev.RunFailure(
        artifact=_digest_to_wire(failure.artifact),
        status=STATUSES[failure.status],
        why=failure.why,
        device=failure.device,
        signal=failure.signal,
        mismatch=failure.mismatch,
        run_seconds=failure.run_seconds,
    )


def _failure_from_wire(message: dev.RunFailure) -> RunFailure:
    return RunFailure(
        artifact=_digest_from_wire(message.artifact),
        status=_known(_STATUS_OF, message.status),
        why=message.why,
        device=message.device,
        signal=message.signal,
        mismatch=message.mismatch,
        run_seconds=message.run_seconds,
    )


def timeline_to_bytes(events: Iterable[TimelineEvent]) -> bytes:
    """A timeline as the blob in which it travels."""
    return dev.Timeline(
        events=[dev.TimelineEvent(**asdict(event)) for event in events]
    ).SerializeToString()


def timeline_from_bytes(content: bytes) -> tuple[TimelineEvent, ...]:
    """The events of a timeline's blob."""
    return tuple(
        TimelineEvent(
            module=event.module,
            name=event.name,
            begin_cycle=event.begin_cycle,
            end_cycle=event.end_cycle,
        )
        for event in _parsed(dev.Timeline, content).events
    )


def _register_to_wire(call: calls.Register) -> trk.RegisterRequest:
    return trk.RegisterRequest(
        device=_device_to_wire(call.device), fence=call.fence, secret=call.secret
    )


def _register_from_wire(message: trk.RegisterRequest) -> calls.Register:
    return calls.Register(
        device=_device_from_wire(message.device), fence=message.fence, secret=message.secret
    )


def _acquire_to_wire(call: calls.Acquire) -> trk.AcquireRequest:
    return trk.AcquireRequest(
        request_id=call.request_id,
        target=_digest_to_wire(call.target),
        labels=_labels_to_wire(call.labels),
        wait_seconds=call.wait_seconds,
        owner=call.owner,
        priority=call.priority,
        job=call.job,
    )


def _acquire_from_wire(message: trk.AcquireRequest) -> calls.Acquire:
    return calls.Acquire(
        request_id=message.request_id,
        target=_digest_from_wire(message.target),
        labels=_labels_from_wire(message.labels),
        wait_seconds=message.wait_seconds,
        owner=message.owner,
        priority=message.priority,
        job=message.job,
    )


def _acquired_to_wire(reply: calls.Acquired) -> trk.AcquireResponse:
    return trk.AcquireResponse(lease=_lease_to_wire(reply.lease) if reply.lease else None)


def _acquired_from_wire(message: trk.AcquireResponse) -> calls.Acquired:
    found = message.HasField("lease")
    return calls.Acquired(lease=_lease_from_wire(message.lease) if found else None)


def _usage_to_wire(usage: calls.Usage | None) -> trk.Usage | None:
    if usage is None:
        return None
    return trk.Usage(runs=usage.runs, busy_seconds=usage.busy_seconds, up_seconds=usage.up_seconds)


def _usage_from_wire(message: trk.Usage) -> calls.Usage:
    return calls.Usage(
        runs=message.runs, busy_seconds=message.busy_seconds, up_seconds=message.up_seconds
    )


def _state_to_wire(state: calls.DeviceState) -> trk.DeviceState:
    return trk.DeviceState(
        device=_device_to_wire(state.device),
        owner=state.owner,
        user=state.user,
        leased_seconds=state.leased_seconds,
        draining=state.draining,
        quarantine=state.quarantine,
        resting=state.resting,
        usage=_usage_to_wire(state.usage),
        lately=_usage_to_wire(state.lately),
    )


def _state_from_wire(message: trk.DeviceState) -> calls.DeviceState:
    return calls.DeviceState(
        device=_device_from_wire(message.device),
        owner=message.owner,
        user=message.user,
        leased_seconds=message.leased_seconds,
        draining=message.draining,
        quarantine=message.quarantine,
        resting=message.resting,
        usage=_usage_from_wire(message.usage) if message.HasField("usage") else None,
        lately=_usage_from_wire(message.lately) if message.HasField("lately") else None,
    )


def _waiting_from_wire(message: trk.Waiting) -> calls.Waiting:
    return calls.Waiting(
        owner=message.owner,
        user=message.user,
        priority=message.priority,
        waited_seconds=message.waited_seconds,
    )


def _devices_to_wire(reply: calls.Devices) -> trk.ListDevicesResponse:
    return trk.ListDevicesResponse(
        devices=map(_state_to_wire, reply.states),
        waiting=[trk.Waiting(**asdict(waiting)) for waiting in reply.waiting],
    )


def _devices_from_wire(message: trk.ListDevicesResponse) -> calls.Devices:
    return calls.Devices(
        states=tuple(map(_state_from_wire, message.devices)),
        waiting=tuple(map(_waiting_from_wire, message.waiting)),
    )


def _capabilities_to_wire(reply: calls.Capabilities) -> dev.GetCapabilitiesResponse:
    return dev.GetCapabilitiesResponse(
        protocol=reply.protocol,
        name=reply.name,
        target=_digest_to_wire(reply.target),
        runtime=reply.runtime,
        sandbox=reply.sandbox,
        epoch=reply.epoch,
        max_blob_nbytes=reply.max_blob_nbytes,
        self_test=reply.self_test,
        protocol_minor=reply.protocol_minor,
    )


def _capabilities_from_wire(message: dev.GetCapabilitiesResponse) -> calls.Capabilities:
    return calls.Capabilities(
        protocol=message.protocol,
        name=message.name,
        target=_digest_from_wire(message.target),
        runtime=message.runtime,
        sandbox=message.sandbox,
        epoch=message.epoch,
        max_blob_nbytes=message.max_blob_nbytes,
        self_test=message.self_test,
        protocol_minor=message.protocol_minor,
    )


def _chunk_to_wire(chunk: calls.Chunk) -> dev.WriteRequest:
    return dev.WriteRequest(
        claim=_claim_to_wire(chunk.claim) if chunk.claim else None,
        digest=_digest_to_wire(chunk.digest),
        offset=chunk.offset,
        data=chunk.data,
        finish=chunk.finish,
    )


def _chunk_from_wire(message: dev.WriteRequest) -> calls.Chunk:
    return calls.Chunk(
        claim=_claim_from_wire(message.claim) if message.HasField("claim") else None,
        digest=_digest_from_wire(message.digest),
        offset=message.offset,
        data=message.data,
        finish=message.finish,
    )


def _load_to_wire(call: calls.LoadModule) -> dev.LoadModuleRequest:
    return dev.LoadModuleRequest(
        claim=_claim_to_wire(call.claim),
        artifact=_digest_to_wire(call.artifact),
        signature=call.signature,
    )


def _load_from_wire(message: dev.LoadModuleRequest) -> calls.LoadModule:
    return calls.LoadModule(
        claim=_claim_from_wire(message.claim),
        artifact=_digest_from_wire(message.artifact),
        signature=message.signature,
    )


def _run_to_wire(call: calls.Run) -> dev.RunRequest:
    return dev.RunRequest(
        claim=_claim_to_wire(call.claim),
        request_id=call.request_id,
        job=_job_to_wire(call.job),
        signature=call.signature,
        blobs=call.blobs,
    )


def _run_from_wire(message: dev.RunRequest) -> calls.Run:
    return calls.Run(
        claim=_claim_from_wire(message.claim),
        request_id=message.request_id,
        job=_job_from_wire(message.job),
        signature=message.signature,
        blobs=tuple(message.blobs),
    )


def _run_reply_to_wire(reply: calls.RunReply) -> dev.RunResponse:
    message = dev.RunResponse(
        outputs=[
            dev.NamedBlob(name=name, digest=_digest_to_wire(digest))
            for name, digest in reply.outputs
        ],
        timeline=_digest_to_wire(reply.timeline),
        queue_seconds=reply.queue_seconds,
        unchecked=reply.unchecked,
    )
    if isinstance(reply.outcome, Measurement):
        message.measurement.CopyFrom(_measurement_to_wire(reply.outcome))
    else:
        message.failure.CopyFrom(_failure_to_wire(reply.outcome))
    return message


def _run_reply_from_wire(message: dev.RunResponse) -> calls.RunReply:
    return calls.RunReply(
        outcome=_outcome_from_wire(message),
        outputs=tuple((blob.name, _digest_from_wire(blob.digest)) for blob in message.outputs),
        timeline=_optional_digest_from_wire(message.timeline),
        queue_seconds=message.queue_seconds,
        unchecked=message.unchecked,
    )


def _outcome_from_wire(message: dev.RunResponse) -> Measurement | RunFailure:
    match message.WhichOneof("outcome"):
        case "measurement":
            return _measurement_from_wire(message.measurement)
        case "failure":
            return _failure_from_wire(message.failure)
        case _:
            raise ValueError("a run's reply without an outcome")


_M = TypeVar("_M", bound=Message)


def _parsed(kind: type[_M], content: bytes) -> _M:
    try:
        return kind.FromString(content)
    except DecodeError as error:
        raise ValueError(f"not a {kind.DESCRIPTOR.full_name}: {error}") from None


@dataclass(frozen=True, slots=True)
class Codec(Generic[_T]):
    """One record's way to bytes and back; `message` is the full name of its message."""

    message: str
    encode: Callable[[_T], bytes]
    decode: Callable[[bytes], _T]


def _codec(kind: type[_M], to_wire: Callable[[_T], _M], from_wire: Callable[[_M], _T]) -> Codec[_T]:
    return Codec(
        message=kind.DESCRIPTOR.full_name,
        encode=lambda record: to_wire(record).SerializeToString(),
        decode=lambda content: from_wire(_parsed(kind, content)),
    )


def _empty(kind: type[_M]) -> Codec[calls.Nothing]:
    return _codec(kind, lambda _: kind(), lambda _: calls.Nothing())


REGISTER: Final = _codec(trk.RegisterRequest, _register_to_wire, _register_from_wire)
REGISTERED: Final = _codec(
    trk.RegisterResponse,
    lambda reply: trk.RegisterResponse(heartbeat_seconds=reply.heartbeat_seconds),
    lambda message: calls.Registered(heartbeat_seconds=message.heartbeat_seconds),
)
HEARTBEAT: Final = _codec(
    trk.HeartbeatRequest,
    lambda call: trk.HeartbeatRequest(
        name=call.name,
        epoch=call.epoch,
        resting=call.resting,
        quarantine=call.quarantine,
        usage=_usage_to_wire(call.usage),
    ),
    lambda message: calls.Heartbeat(
        name=message.name,
        epoch=message.epoch,
        resting=message.resting,
        quarantine=message.quarantine,
        usage=_usage_from_wire(message.usage) if message.HasField("usage") else None,
    ),
)
HEARTBEAT_REPLY: Final = _codec(
    trk.HeartbeatResponse,
    lambda reply: trk.HeartbeatResponse(
        known=reply.known, quarantined=reply.quarantined, readmissions=reply.readmissions
    ),
    lambda message: calls.HeartbeatReply(
        known=message.known, quarantined=message.quarantined, readmissions=message.readmissions
    ),
)
DEREGISTER: Final = _codec(
    trk.DeregisterRequest,
    lambda ref: trk.DeregisterRequest(name=ref.name, epoch=ref.epoch),
    lambda message: calls.DeviceRef(name=message.name, epoch=message.epoch),
)
DEREGISTERED: Final = _empty(trk.DeregisterResponse)
ACQUIRE: Final = _codec(trk.AcquireRequest, _acquire_to_wire, _acquire_from_wire)
ACQUIRED: Final = _codec(trk.AcquireResponse, _acquired_to_wire, _acquired_from_wire)
RENEW: Final = _codec(
    trk.RenewRequest,
    lambda call: trk.RenewRequest(lease_id=call.lease_id, lends=call.lends),
    lambda message: calls.Renew(lease_id=message.lease_id, lends=message.lends),
)
RENEWED: Final = _codec(
    trk.RenewResponse,
    lambda reply: trk.RenewResponse(
        ttl_seconds=reply.ttl_seconds, wanted_seconds=reply.wanted_seconds
    ),
    lambda message: calls.Renewed(
        ttl_seconds=message.ttl_seconds,
        wanted_seconds=message.wanted_seconds if message.HasField("wanted_seconds") else None,
    ),
)
RELEASE: Final = _codec(
    trk.ReleaseRequest,
    lambda call: trk.ReleaseRequest(
        lease_id=call.lease_id, device_lost=call.device_lost, why=call.why
    ),
    lambda message: calls.Release(
        lease_id=message.lease_id, device_lost=message.device_lost, why=message.why
    ),
)
RELEASED: Final = _empty(trk.ReleaseResponse)
LIST_DEVICES: Final = _empty(trk.ListDevicesRequest)
DEVICES: Final = _codec(trk.ListDevicesResponse, _devices_to_wire, _devices_from_wire)
DRAIN: Final = _codec(
    trk.DrainRequest,
    lambda call: trk.DrainRequest(name=call.name, why=call.why),
    lambda message: calls.Drain(name=message.name, why=message.why),
)
DRAINED: Final = _empty(trk.DrainResponse)
READMIT: Final = _codec(
    trk.ReadmitRequest,
    lambda call: trk.ReadmitRequest(name=call.name),
    lambda message: calls.Readmit(name=message.name),
)
READMITTED: Final = _empty(trk.ReadmitResponse)
GET_CAPABILITIES: Final = _empty(dev.GetCapabilitiesRequest)
CAPABILITIES: Final = _codec(
    dev.GetCapabilitiesResponse, _capabilities_to_wire, _capabilities_from_wire
)
FIND_MISSING: Final = _codec(
    dev.FindMissingRequest,
    lambda call: dev.FindMissingRequest(digests=map(_digest_to_wire, call.digests)),
    lambda message: calls.Digests(tuple(map(_digest_from_wire, message.digests))),
)
MISSING: Final = _codec(
    dev.FindMissingResponse,
    lambda reply: dev.FindMissingResponse(missing=map(_digest_to_wire, reply.digests)),
    lambda message: calls.Digests(tuple(map(_digest_from_wire, message.missing))),
)
QUERY_WRITE: Final = _codec(
    dev.QueryWriteRequest,
    lambda call: dev.QueryWriteRequest(
        claim=_claim_to_wire(call.claim), digest=_digest_to_wire(call.digest)
    ),
    lambda message: calls.QueryWrite(
        claim=_claim_from_wire(message.claim), digest=_digest_from_wire(message.digest)
    ),
)
COMMITTED: Final = _codec(
    dev.QueryWriteResponse,
    lambda reply: dev.QueryWriteResponse(committed_nbytes=reply.nbytes),
    lambda message: calls.Committed(nbytes=message.committed_nbytes),
)
CHUNK: Final = _codec(dev.WriteRequest, _chunk_to_wire, _chunk_from_wire)
STORED: Final = _codec(
    dev.WriteResponse,
    lambda reply: dev.WriteResponse(stored_nbytes=reply.nbytes),
    lambda message: calls.Stored(nbytes=message.stored_nbytes),
)
LOAD_MODULE: Final = _codec(dev.LoadModuleRequest, _load_to_wire, _load_from_wire)
MODULE_VERDICT: Final = _codec(
    dev.LoadModuleResponse,
    lambda reply: dev.LoadModuleResponse(rejection=reply.rejection),
    lambda message: calls.ModuleVerdict(rejection=message.rejection),
)
RUN: Final = _codec(dev.RunRequest, _run_to_wire, _run_from_wire)
RUN_REPLY: Final = _codec(dev.RunResponse, _run_reply_to_wire, _run_reply_from_wire)
CHECK: Final = _codec(
    dev.CheckRequest,
    lambda call: dev.CheckRequest(claim=_claim_to_wire(call.claim)),
    lambda message: calls.Check(claim=_claim_from_wire(message.claim)),
)
CHECKED: Final = _empty(dev.CheckResponse)
READ: Final = _codec(
    dev.ReadRequest,
    lambda call: dev.ReadRequest(digest=_digest_to_wire(call.digest)),
    lambda message: calls.Read(digest=_digest_from_wire(message.digest)),
)
PIECE: Final = _codec(
    dev.ReadResponse,
    lambda piece: dev.ReadResponse(data=piece.data),
    lambda message: calls.Piece(message.data),
)
