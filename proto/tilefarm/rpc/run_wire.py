"""A run's job, what came of it, and its timeline to messages and back, adjacent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Final

from tilefarm.machine import VTA_COUNTERS
from tilefarm.measurement import (
    BufferSpec,
    CallTime,
    Counters,
    Measurement,
    Precision,
    Role,
    RunFailure,
    RunJob,
    Status,
    TimelineEvent,
    WallTime,
)
from tilefarm.rpc.codec import (
    digest_from_wire,
    digest_to_wire,
    known,
    optional_digest_from_wire,
    parsed,
)
from tilefarm.v1 import device_pb2 as dev

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
    Status.IMPLAUSIBLE: dev.STATUS_IMPLAUSIBLE,
}
ROLES: Final[Mapping[Role, dev.Role]] = {
    Role.CONSTANT: dev.ROLE_CONSTANT,
    Role.INPUT: dev.ROLE_INPUT,
    Role.OUTPUT: dev.ROLE_OUTPUT,
    Role.SCRATCH: dev.ROLE_SCRATCH,
}
_STATUS_OF: Final = {number: status for status, number in STATUSES.items()}
_ROLE_OF: Final = {number: role for role, number in ROLES.items()}


def _buffer_to_wire(buffer: BufferSpec) -> dev.BufferSpec:
    return dev.BufferSpec(
        name=buffer.name,
        role=ROLES[buffer.role],
        nbytes=buffer.nbytes,
        content=digest_to_wire(buffer.content),
        expected=digest_to_wire(buffer.expected),
        fetch=buffer.fetch,
    )


def _buffer_from_wire(message: dev.BufferSpec) -> BufferSpec:
    return BufferSpec(
        name=message.name,
        role=known(_ROLE_OF, message.role),
        nbytes=message.nbytes,
        content=optional_digest_from_wire(message.content),
        expected=optional_digest_from_wire(message.expected),
        fetch=message.fetch,
    )


def job_to_wire(job: RunJob) -> dev.RunJob:
    """A run's job as a message."""
    return dev.RunJob(
        artifact=digest_to_wire(job.artifact),
        entry=job.entry,
        buffers=map(_buffer_to_wire, job.buffers),
        samples=job.samples,
        repeats=job.repeats,
        timeout_seconds=job.timeout_seconds,
        timeline=job.timeline,
        profile=job.profile,
        precision=dev.Precision(**asdict(job.precision)) if job.precision else None,
    )


def job_from_wire(message: dev.RunJob) -> RunJob:
    """A run's job out of its message."""
    return RunJob(
        artifact=digest_from_wire(message.artifact),
        entry=message.entry,
        buffers=tuple(map(_buffer_from_wire, message.buffers)),
        samples=message.samples,
        repeats=message.repeats,
        timeout_seconds=message.timeout_seconds,
        timeline=message.timeline,
        profile=tuple(message.profile),
        precision=_precision_from_wire(message.precision)
        if message.HasField("precision")
        else None,
    )


def _call_time_to_wire(time: CallTime) -> dev.CallTime:
    return dev.CallTime(cycles=time.cycles, wall_time=_wall_time_to_wire(time.wall_time))


def _call_time_from_wire(message: dev.CallTime) -> CallTime:
    return CallTime(
        cycles=message.cycles if message.HasField("cycles") else None,
        wall_time=_wall_time_of(message),
    )


def _precision_from_wire(message: dev.Precision) -> Precision:
    return Precision(error=message.error, seconds=message.seconds)


def _wall_time_to_wire(time: WallTime | None) -> dev.WallTime | None:
    return None if time is None else dev.WallTime(**asdict(time))


def _wall_time_of(holder: dev.Measurement | dev.CallTime) -> WallTime | None:
    if not holder.HasField("wall_time"):
        return None
    message = holder.wall_time
    return WallTime(**{name: getattr(message, name) for name in WallTime.__dataclass_fields__})


def _counters_to_wire(counters: Counters) -> dev.Counters:
    """The message has a field for each of VTA's; it refuses names of other machines."""
    return dev.Counters(**dict(counters.counts))


def _counters_from_wire(message: dev.Counters) -> Counters:
    return Counters(**{name: getattr(message, name) for name in VTA_COUNTERS})


def measurement_to_wire(measurement: Measurement) -> dev.Measurement:
    """Everything but outputs and timeline, which travel as blobs."""
    return dev.Measurement(
        artifact=digest_to_wire(measurement.artifact),
        device=measurement.device,
        counters=_counters_to_wire(measurement.counters) if measurement.counters else None,
        seconds=measurement.seconds,
        sample_cycles=measurement.sample_cycles,
        load_seconds=measurement.load_seconds,
        run_seconds=measurement.run_seconds,
        wall_time=_wall_time_to_wire(measurement.wall_time),
        profile=map(_call_time_to_wire, measurement.profile),
    )


def measurement_from_wire(message: dev.Measurement) -> Measurement:
    """A measurement out of its message, without outputs and timeline."""
    return Measurement(
        artifact=digest_from_wire(message.artifact),
        device=message.device,
        counters=_counters_from_wire(message.counters) if message.HasField("counters") else None,
        seconds=tuple(message.seconds),
        sample_cycles=tuple(message.sample_cycles),
        load_seconds=message.load_seconds,
        run_seconds=message.run_seconds,
        wall_time=_wall_time_of(message),
        profile=tuple(map(_call_time_from_wire, message.profile)),
    )


def failure_to_wire(failure: RunFailure) -> dev.RunFailure:
    """A run's failure as a message."""
    return dev.RunFailure(
        artifact=digest_to_wire(failure.artifact),
        status=STATUSES[failure.status],
        why=failure.why,
        device=failure.device,
        signal=failure.signal,
        mismatch=failure.mismatch,
        run_seconds=failure.run_seconds,
    )


def failure_from_wire(message: dev.RunFailure) -> RunFailure:
    """A run's failure out of its message."""
    status = known(_STATUS_OF, message.status)
    if status is Status.OK:
        raise ValueError("a failure that ended well")
    return RunFailure(
        artifact=digest_from_wire(message.artifact),
        status=status,
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
        for event in parsed(dev.Timeline, content).events
    )
