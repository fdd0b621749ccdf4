"""The tracker's requests and replies to messages and back, adjacent."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from tilefarm.rpc import tracker_calls
from tilefarm.rpc.codec import codec, digest_from_wire, digest_to_wire, empty
from tilefarm.rpc.lease_wire import (
    device_from_wire,
    device_to_wire,
    labels_from_wire,
    labels_to_wire,
    lease_from_wire,
    lease_to_wire,
)
from tilefarm.v1 import tracker_pb2 as trk


def _register_to_wire(call: tracker_calls.Register) -> trk.RegisterRequest:
    return trk.RegisterRequest(
        device=device_to_wire(call.device), fence=call.fence, secret=call.secret
    )


def _register_from_wire(message: trk.RegisterRequest) -> tracker_calls.Register:
    return tracker_calls.Register(
        device=device_from_wire(message.device), fence=message.fence, secret=message.secret
    )


def _acquire_to_wire(call: tracker_calls.Acquire) -> trk.AcquireRequest:
    return trk.AcquireRequest(
        request_id=call.request_id,
        target=digest_to_wire(call.target),
        labels=labels_to_wire(call.labels),
        wait_seconds=call.wait_seconds,
        owner=call.owner,
        priority=call.priority,
        job=call.job,
    )


def _acquire_from_wire(message: trk.AcquireRequest) -> tracker_calls.Acquire:
    return tracker_calls.Acquire(
        request_id=message.request_id,
        target=digest_from_wire(message.target),
        labels=labels_from_wire(message.labels),
        wait_seconds=message.wait_seconds,
        owner=message.owner,
        priority=message.priority,
        job=message.job,
    )


def _acquired_to_wire(reply: tracker_calls.Acquired) -> trk.AcquireResponse:
    return trk.AcquireResponse(lease=lease_to_wire(reply.lease) if reply.lease else None)


def _acquired_from_wire(message: trk.AcquireResponse) -> tracker_calls.Acquired:
    found = message.HasField("lease")
    return tracker_calls.Acquired(lease=lease_from_wire(message.lease) if found else None)


def _usage_to_wire(usage: tracker_calls.Usage | None) -> trk.Usage | None:
    if usage is None:
        return None
    return trk.Usage(runs=usage.runs, busy_seconds=usage.busy_seconds, up_seconds=usage.up_seconds)


def _usage_from_wire(message: trk.Usage) -> tracker_calls.Usage:
    return tracker_calls.Usage(
        runs=message.runs, busy_seconds=message.busy_seconds, up_seconds=message.up_seconds
    )


def _refused_run_to_wire(run: tracker_calls.RefusedRun) -> trk.RefusedRun:
    return trk.RefusedRun(
        artifact=digest_to_wire(run.artifact),
        entry=run.entry,
        crashes=run.crashes,
        status=run.status,
        why=run.why,
        refused_seconds=run.refused_seconds,
    )


def _refused_run_from_wire(message: trk.RefusedRun) -> tracker_calls.RefusedRun:
    return tracker_calls.RefusedRun(
        artifact=digest_from_wire(message.artifact),
        entry=message.entry,
        crashes=message.crashes,
        status=message.status,
        why=message.why,
        refused_seconds=message.refused_seconds,
    )


def _refused_to_wire(refused: tracker_calls.RefusedRuns | None) -> trk.RefusedRuns | None:
    if refused is None:
        return None
    return trk.RefusedRuns(edition=refused.edition, runs=map(_refused_run_to_wire, refused.runs))


def _refused_from_wire(message: trk.RefusedRuns) -> tracker_calls.RefusedRuns:
    return tracker_calls.RefusedRuns(
        edition=message.edition, runs=tuple(map(_refused_run_from_wire, message.runs))
    )


def _state_to_wire(state: tracker_calls.DeviceState) -> trk.DeviceState:
    return trk.DeviceState(
        device=device_to_wire(state.device),
        owner=state.owner,
        user=state.user,
        leased_seconds=state.leased_seconds,
        draining=state.draining,
        quarantine=state.quarantine,
        resting=state.resting,
        usage=_usage_to_wire(state.usage),
        lately=_usage_to_wire(state.lately),
        refused=state.refused,
    )


def _state_from_wire(message: trk.DeviceState) -> tracker_calls.DeviceState:
    return tracker_calls.DeviceState(
        device=device_from_wire(message.device),
        owner=message.owner,
        user=message.user,
        leased_seconds=message.leased_seconds,
        draining=message.draining,
        quarantine=message.quarantine,
        resting=message.resting,
        usage=_usage_from_wire(message.usage) if message.HasField("usage") else None,
        lately=_usage_from_wire(message.lately) if message.HasField("lately") else None,
        refused=message.refused,
    )


def _waiting_from_wire(message: trk.Waiting) -> tracker_calls.Waiting:
    return tracker_calls.Waiting(
        owner=message.owner,
        user=message.user,
        priority=message.priority,
        waited_seconds=message.waited_seconds,
    )


def _devices_to_wire(reply: tracker_calls.Devices) -> trk.ListDevicesResponse:
    return trk.ListDevicesResponse(
        devices=map(_state_to_wire, reply.states),
        waiting=[trk.Waiting(**asdict(waiting)) for waiting in reply.waiting],
    )


def _devices_from_wire(message: trk.ListDevicesResponse) -> tracker_calls.Devices:
    return tracker_calls.Devices(
        states=tuple(map(_state_from_wire, message.devices)),
        waiting=tuple(map(_waiting_from_wire, message.waiting)),
    )


REGISTER: Final = codec(trk.RegisterRequest, _register_to_wire, _register_from_wire)
REGISTERED: Final = codec(
    trk.RegisterResponse,
    lambda reply: trk.RegisterResponse(heartbeat_seconds=reply.heartbeat_seconds),
    lambda message: tracker_calls.Registered(heartbeat_seconds=message.heartbeat_seconds),
)
HEARTBEAT: Final = codec(
    trk.HeartbeatRequest,
    lambda call: trk.HeartbeatRequest(
        name=call.name,
        epoch=call.epoch,
        resting=call.resting,
        quarantine=call.quarantine,
        usage=_usage_to_wire(call.usage),
        refused=_refused_to_wire(call.refused),
    ),
    lambda message: tracker_calls.Heartbeat(
        name=message.name,
        epoch=message.epoch,
        resting=message.resting,
        quarantine=message.quarantine,
        usage=_usage_from_wire(message.usage) if message.HasField("usage") else None,
        refused=_refused_from_wire(message.refused) if message.HasField("refused") else None,
    ),
)
HEARTBEAT_REPLY: Final = codec(
    trk.HeartbeatResponse,
    lambda reply: trk.HeartbeatResponse(
        known=reply.known,
        quarantined=reply.quarantined,
        readmissions=reply.readmissions,
        refused_edition=reply.refused_edition,
        ended_fence=reply.ended_fence,
    ),
    lambda message: tracker_calls.HeartbeatReply(
        known=message.known,
        quarantined=message.quarantined,
        readmissions=message.readmissions,
        refused_edition=message.refused_edition if message.HasField("refused_edition") else None,
        ended_fence=message.ended_fence if message.HasField("ended_fence") else None,
    ),
)
DEREGISTER: Final = codec(
    trk.DeregisterRequest,
    lambda ref: trk.DeregisterRequest(name=ref.name, epoch=ref.epoch),
    lambda message: tracker_calls.DeviceRef(name=message.name, epoch=message.epoch),
)
DEREGISTERED: Final = empty(trk.DeregisterResponse)
ACQUIRE: Final = codec(trk.AcquireRequest, _acquire_to_wire, _acquire_from_wire)
ACQUIRED: Final = codec(trk.AcquireResponse, _acquired_to_wire, _acquired_from_wire)
RENEW: Final = codec(
    trk.RenewRequest,
    lambda call: trk.RenewRequest(lease_id=call.lease_id, lends=call.lends),
    lambda message: tracker_calls.Renew(lease_id=message.lease_id, lends=message.lends),
)
RENEWED: Final = codec(
    trk.RenewResponse,
    lambda reply: trk.RenewResponse(
        ttl_seconds=reply.ttl_seconds, wanted_seconds=reply.wanted_seconds
    ),
    lambda message: tracker_calls.Renewed(
        ttl_seconds=message.ttl_seconds,
        wanted_seconds=message.wanted_seconds if message.HasField("wanted_seconds") else None,
    ),
)
RELEASE: Final = codec(
    trk.ReleaseRequest,
    lambda call: trk.ReleaseRequest(
        lease_id=call.lease_id, device_lost=call.device_lost, why=call.why
    ),
    lambda message: tracker_calls.Release(
        lease_id=message.lease_id, device_lost=message.device_lost, why=message.why
    ),
)
RELEASED: Final = empty(trk.ReleaseResponse)
LIST_DEVICES: Final = empty(trk.ListDevicesRequest)
DEVICES: Final = codec(trk.ListDevicesResponse, _devices_to_wire, _devices_from_wire)
LIST_REFUSED_RUNS: Final = codec(
    trk.ListRefusedRunsRequest,
    lambda call: trk.ListRefusedRunsRequest(name=call.name),
    lambda message: tracker_calls.ListRefusedRuns(name=message.name),
)
LISTED_REFUSED_RUNS: Final = codec(
    trk.ListRefusedRunsResponse,
    lambda reply: trk.ListRefusedRunsResponse(runs=map(_refused_run_to_wire, reply.runs)),
    lambda message: tracker_calls.ListedRefusedRuns(
        runs=tuple(map(_refused_run_from_wire, message.runs))
    ),
)
DRAIN: Final = codec(
    trk.DrainRequest,
    lambda call: trk.DrainRequest(name=call.name, why=call.why),
    lambda message: tracker_calls.Drain(name=message.name, why=message.why),
)
DRAINED: Final = empty(trk.DrainResponse)
READMIT: Final = codec(
    trk.ReadmitRequest,
    lambda call: trk.ReadmitRequest(name=call.name),
    lambda message: tracker_calls.Readmit(name=message.name),
)
READMITTED: Final = empty(trk.ReadmitResponse)
