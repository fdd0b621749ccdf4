"""Strategies for the records that cross processes."""

from __future__ import annotations

from hypothesis import strategies as st
from tilefarm.digest import Digest
from tilefarm.lease import DeviceInfo, Lease
from tilefarm.machine import VTA_COUNTERS
from tilefarm.measurement import (
    BufferSpec,
    CallTime,
    Counters,
    DeviceClock,
    Measurement,
    Precision,
    Role,
    RunFailure,
    RunJob,
    Status,
    TimelineEvent,
    WallTime,
)
from tilefarm.rpc import device_calls

NAMES = st.text(st.characters(codec="utf-8"), max_size=8)
COUNTS = st.integers(0, 2**53)
FENCES = st.integers(0, 2**64 - 1)
SMALL_COUNTS = st.integers(0, 2**32 - 1)
SECONDS = st.floats(0, 1e9)
DIGESTS = st.binary(max_size=4).map(Digest.of)
LABELS = st.lists(st.tuples(NAMES, NAMES), max_size=2).map(tuple)

POSITIVE_SECONDS = st.floats(1e-9, 1e9)
PRECISIONS = st.builds(Precision, error=st.floats(1e-6, 1), seconds=POSITIVE_SECONDS)


@st.composite
def wall_times(draw: st.DrawFn) -> WallTime:
    """Times in order, and counts that there can be."""
    times = sorted(draw(POSITIVE_SECONDS) for _ in range(4))
    names = ("minimum_seconds", "p10_seconds", "median_seconds", "p90_seconds")
    return WallTime(
        **dict(zip(names, times, strict=True)),
        calls=draw(st.integers(1, 2**32 - 1)),
        regions=draw(st.integers(1, 2**32 - 1)),
        rejected=draw(SMALL_COUNTS),
        preemptions=draw(SMALL_COUNTS),
        stolen_seconds=draw(SECONDS),
        begin_mhz=draw(SECONDS),
        end_mhz=draw(SECONDS),
    )


CALL_TIMES = st.builds(CallTime, cycles=st.none() | COUNTS, wall_time=st.none() | wall_times())
BUFFERS = st.builds(
    BufferSpec,
    name=NAMES,
    role=st.sampled_from(Role),
    nbytes=COUNTS,
    content=st.none() | DIGESTS,
    expected=st.none() | DIGESTS,
    fetch=st.booleans(),
)
JOBS = st.builds(
    RunJob,
    artifact=DIGESTS,
    entry=NAMES,
    buffers=st.lists(BUFFERS, max_size=3).map(tuple),
    samples=SMALL_COUNTS,
    repeats=SMALL_COUNTS,
    precision=st.none() | PRECISIONS,
    profile=st.lists(NAMES, max_size=2).map(tuple),
    timeout_seconds=SECONDS,
    timeline=st.booleans(),
)
COUNTERS = st.builds(Counters, **dict.fromkeys(VTA_COUNTERS, COUNTS))
EVENTS = st.builds(TimelineEvent, module=NAMES, name=NAMES, begin_cycle=COUNTS, end_cycle=COUNTS)
MEASUREMENTS = st.builds(
    Measurement,
    artifact=DIGESTS,
    device=NAMES,
    counters=st.none() | COUNTERS,
    wall_time=st.none() | wall_times(),
    profile=st.lists(CALL_TIMES, max_size=2).map(tuple),
    seconds=st.lists(SECONDS, max_size=3).map(tuple),
    sample_cycles=st.lists(COUNTS, max_size=3).map(tuple),
    load_seconds=SECONDS,
    run_seconds=SECONDS,
)
FAILURES = st.builds(
    RunFailure,
    artifact=DIGESTS,
    status=st.sampled_from([status for status in Status if status is not Status.OK]),
    why=NAMES,
    device=NAMES,
    signal=st.integers(-(2**31), 2**31 - 1),
    mismatch=NAMES,
    run_seconds=SECONDS,
    untimed=st.booleans(),
)
DEVICES = st.builds(
    DeviceInfo,
    name=NAMES,
    address=NAMES,
    target=DIGESTS,
    runtime=NAMES,
    sandbox=NAMES,
    epoch=NAMES,
    labels=LABELS,
    self_test=NAMES,
    clock=st.sampled_from(DeviceClock),
    known_seconds=SECONDS,
    known_spread=SECONDS,
    power=NAMES,
)
TICKETS = st.binary(max_size=4)
LEASES = st.builds(
    Lease, lease_id=NAMES, device=DEVICES, fence=FENCES, ttl_seconds=SECONDS, ticket=TICKETS
)
CLAIMS = st.builds(device_calls.Claim, lease_id=NAMES, fence=FENCES, epoch=NAMES, ticket=TICKETS)
CHUNKS = st.builds(
    device_calls.Chunk,
    digest=DIGESTS,
    offset=COUNTS,
    data=st.binary(max_size=8),
    finish=st.booleans(),
    claim=st.none() | CLAIMS,
)
RUN_REPLIES = st.builds(
    device_calls.RunReply,
    outcome=MEASUREMENTS | FAILURES,
    outputs=st.lists(st.tuples(NAMES, DIGESTS), max_size=2).map(tuple),
    timeline=st.none() | DIGESTS,
    queue_seconds=SECONDS,
    unchecked=SMALL_COUNTS,
    served=st.binary(max_size=8),
)
