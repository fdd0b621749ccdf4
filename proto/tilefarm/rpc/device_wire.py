"""A device's requests and replies to messages and back, adjacent."""

from __future__ import annotations

from typing import Final

from tilefarm.measurement import Measurement, RunFailure
from tilefarm.rpc import device_calls
from tilefarm.rpc.codec import (
    codec,
    digest_from_wire,
    digest_to_wire,
    empty,
    optional_digest_from_wire,
)
from tilefarm.rpc.run_wire import (
    failure_from_wire,
    failure_to_wire,
    job_from_wire,
    job_to_wire,
    measurement_from_wire,
    measurement_to_wire,
)
from tilefarm.v1 import device_pb2 as dev
from tilefarm.watch.work import is_name


def _claim_to_wire(claim: device_calls.Claim) -> dev.Claim:
    return dev.Claim(
        lease_id=claim.lease_id, fence=claim.fence, epoch=claim.epoch, ticket=claim.ticket
    )


def _claim_from_wire(message: dev.Claim) -> device_calls.Claim:
    return device_calls.Claim(
        lease_id=message.lease_id,
        fence=message.fence,
        epoch=message.epoch,
        ticket=message.ticket,
    )


def _capabilities_to_wire(reply: device_calls.Capabilities) -> dev.GetCapabilitiesResponse:
    return dev.GetCapabilitiesResponse(
        protocol=reply.protocol,
        name=reply.name,
        target=digest_to_wire(reply.target),
        runtime=reply.runtime,
        sandbox=reply.sandbox,
        epoch=reply.epoch,
        max_blob_nbytes=reply.max_blob_nbytes,
        self_test=reply.self_test,
        protocol_minor=reply.protocol_minor,
        spoiled_fence=reply.spoiled_fence,
    )


def _capabilities_from_wire(message: dev.GetCapabilitiesResponse) -> device_calls.Capabilities:
    return device_calls.Capabilities(
        protocol=message.protocol,
        name=message.name,
        target=digest_from_wire(message.target),
        runtime=message.runtime,
        sandbox=message.sandbox,
        epoch=message.epoch,
        max_blob_nbytes=message.max_blob_nbytes,
        self_test=message.self_test,
        protocol_minor=message.protocol_minor,
        spoiled_fence=message.spoiled_fence,
    )


def _chunk_to_wire(chunk: device_calls.Chunk) -> dev.WriteRequest:
    return dev.WriteRequest(
        claim=_claim_to_wire(chunk.claim) if chunk.claim else None,
        digest=digest_to_wire(chunk.digest),
        offset=chunk.offset,
        data=chunk.data,
        finish=chunk.finish,
    )


def _chunk_from_wire(message: dev.WriteRequest) -> device_calls.Chunk:
    return device_calls.Chunk(
        claim=_claim_from_wire(message.claim) if message.HasField("claim") else None,
        digest=digest_from_wire(message.digest),
        offset=message.offset,
        data=message.data,
        finish=message.finish,
    )


def _load_to_wire(call: device_calls.LoadModule) -> dev.LoadModuleRequest:
    return dev.LoadModuleRequest(
        claim=_claim_to_wire(call.claim),
        artifact=digest_to_wire(call.artifact),
        signature=call.signature,
    )


def _load_from_wire(message: dev.LoadModuleRequest) -> device_calls.LoadModule:
    return device_calls.LoadModule(
        claim=_claim_from_wire(message.claim),
        artifact=digest_from_wire(message.artifact),
        signature=message.signature,
    )


def _run_to_wire(call: device_calls.Run) -> dev.RunRequest:
    return dev.RunRequest(
        claim=_claim_to_wire(call.claim),
        request_id=call.request_id,
        job=job_to_wire(call.job),
        signature=call.signature,
        blobs=call.blobs,
        candidate=call.candidate,
    )


def _run_from_wire(message: dev.RunRequest) -> device_calls.Run:
    if message.candidate and not is_name(message.candidate):
        raise ValueError(f"a candidate {message.candidate[:64]!r}")
    return device_calls.Run(
        claim=_claim_from_wire(message.claim),
        request_id=message.request_id,
        job=job_from_wire(message.job),
        signature=message.signature,
        blobs=tuple(message.blobs),
        candidate=message.candidate,
    )


def _batch_from_wire(message: dev.RunBatchRequest) -> device_calls.RunBatch:
    if not 1 <= len(message.runs) <= device_calls.MOST_RUNS:
        raise ValueError(f"{len(message.runs)} runs, not 1..{device_calls.MOST_RUNS}")
    return device_calls.RunBatch(tuple(map(_run_from_wire, message.runs)))


def _run_reply_to_wire(reply: device_calls.RunReply) -> dev.RunResponse:
    message = dev.RunResponse(
        outputs=[
            dev.NamedBlob(name=name, digest=digest_to_wire(digest))
            for name, digest in reply.outputs
        ],
        timeline=digest_to_wire(reply.timeline),
        queue_seconds=reply.queue_seconds,
        unchecked=reply.unchecked,
        served=reply.served,
    )
    if isinstance(reply.outcome, Measurement):
        message.measurement.CopyFrom(measurement_to_wire(reply.outcome))
    else:
        message.failure.CopyFrom(failure_to_wire(reply.outcome))
    return message


def _run_reply_from_wire(message: dev.RunResponse) -> device_calls.RunReply:
    return device_calls.RunReply(
        outcome=_outcome_from_wire(message),
        outputs=tuple((blob.name, digest_from_wire(blob.digest)) for blob in message.outputs),
        timeline=optional_digest_from_wire(message.timeline),
        queue_seconds=message.queue_seconds,
        unchecked=message.unchecked,
        served=message.served,
    )


def _outcome_from_wire(message: dev.RunResponse) -> Measurement | RunFailure:
    match message.WhichOneof("outcome"):
        case "measurement":
            return measurement_from_wire(message.measurement)
        case "failure":
            return failure_from_wire(message.failure)
        case _:
            raise ValueError("a run's reply without an outcome")


GET_CAPABILITIES: Final = empty(dev.GetCapabilitiesRequest)
CAPABILITIES: Final = codec(
    dev.GetCapabilitiesResponse, _capabilities_to_wire, _capabilities_from_wire
)
FIND_MISSING: Final = codec(
    dev.FindMissingRequest,
    lambda call: dev.FindMissingRequest(digests=map(digest_to_wire, call.digests)),
    lambda message: device_calls.Digests(tuple(map(digest_from_wire, message.digests))),
)
MISSING: Final = codec(
    dev.FindMissingResponse,
    lambda reply: dev.FindMissingResponse(missing=map(digest_to_wire, reply.digests)),
    lambda message: device_calls.Digests(tuple(map(digest_from_wire, message.missing))),
)
QUERY_WRITE: Final = codec(
    dev.QueryWriteRequest,
    lambda call: dev.QueryWriteRequest(
        claim=_claim_to_wire(call.claim), digest=digest_to_wire(call.digest)
    ),
    lambda message: device_calls.QueryWrite(
        claim=_claim_from_wire(message.claim), digest=digest_from_wire(message.digest)
    ),
)
COMMITTED: Final = codec(
    dev.QueryWriteResponse,
    lambda reply: dev.QueryWriteResponse(committed_nbytes=reply.nbytes),
    lambda message: device_calls.Committed(nbytes=message.committed_nbytes),
)
CHUNK: Final = codec(dev.WriteRequest, _chunk_to_wire, _chunk_from_wire)
STORED: Final = codec(
    dev.WriteResponse,
    lambda reply: dev.WriteResponse(stored_nbytes=reply.nbytes),
    lambda message: device_calls.Stored(nbytes=message.stored_nbytes),
)
LOAD_MODULE: Final = codec(dev.LoadModuleRequest, _load_to_wire, _load_from_wire)
MODULE_VERDICT: Final = codec(
    dev.LoadModuleResponse,
    lambda reply: dev.LoadModuleResponse(rejection=reply.rejection),
    lambda message: device_calls.ModuleVerdict(rejection=message.rejection),
)
RUN: Final = codec(dev.RunRequest, _run_to_wire, _run_from_wire)
RUN_REPLY: Final = codec(dev.RunResponse, _run_reply_to_wire, _run_reply_from_wire)
RUN_BATCH: Final = codec(
    dev.RunBatchRequest,
    lambda call: dev.RunBatchRequest(runs=map(_run_to_wire, call.runs)),
    _batch_from_wire,
)
RUN_BATCH_REPLY: Final = codec(
    dev.RunBatchResponse,
    lambda reply: dev.RunBatchResponse(runs=map(_run_reply_to_wire, reply.replies)),
    lambda message: device_calls.RunBatchReply(tuple(map(_run_reply_from_wire, message.runs))),
)
CHECK: Final = codec(
    dev.CheckRequest,
    lambda call: dev.CheckRequest(claim=_claim_to_wire(call.claim)),
    lambda message: device_calls.Check(claim=_claim_from_wire(message.claim)),
)
CHECKED: Final = empty(dev.CheckResponse)
READ: Final = codec(
    dev.ReadRequest,
    lambda call: dev.ReadRequest(digest=digest_to_wire(call.digest)),
    lambda message: device_calls.Read(digest=digest_from_wire(message.digest)),
)
PIECE: Final = codec(
    dev.ReadResponse,
    lambda piece: dev.ReadResponse(data=piece.data),
    lambda message: device_calls.Piece(message.data),
)
