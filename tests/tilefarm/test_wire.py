"""Every record survives its way over the wire, and nothing else is taken for one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.messages import records
from kit.messages.records import COUNTS, DIGESTS, FENCES, LABELS, NAMES, SECONDS, TICKETS
from kit.messages.specimens import codecs
from tilefarm.digest import Digest
from tilefarm.measurement import DeviceClock, RunFailure, Status
from tilefarm.rpc import device_calls, tracker_calls, wire
from tilefarm.rpc.codec import Codec, codec
from tilefarm.rpc.empty import Empty
from tilefarm.v1 import device_pb2, tracker_pb2

DIGEST_LISTS = st.lists(DIGESTS, max_size=3).map(tuple).map(device_calls.Digests)
REFS = st.builds(tracker_calls.DeviceRef, name=NAMES, epoch=NAMES)
USAGES = st.none() | st.builds(
    tracker_calls.Usage, runs=COUNTS, busy_seconds=SECONDS, up_seconds=SECONDS
)
REFUSED_RUNS = st.lists(
    st.builds(
        tracker_calls.RefusedRun,
        artifact=DIGESTS,
        entry=NAMES,
        crashes=records.SMALL_COUNTS,
        status=NAMES,
        why=NAMES,
        refused_seconds=SECONDS,
    ),
    max_size=2,
).map(tuple)
STATES = st.builds(
    tracker_calls.DeviceState,
    device=records.DEVICES,
    owner=NAMES,
    user=NAMES,
    leased_seconds=SECONDS,
    draining=NAMES,
    quarantine=NAMES,
    resting=NAMES,
    usage=USAGES,
    lately=USAGES,
    refused=records.SMALL_COUNTS,
)
PRIORITIES = st.integers(-(2**31), 2**31 - 1)
WAITING = st.builds(
    tracker_calls.Waiting, owner=NAMES, user=NAMES, priority=PRIORITIES, waited_seconds=SECONDS
)

RUNS = st.builds(
    device_calls.Run,
    claim=records.CLAIMS,
    request_id=NAMES,
    job=records.JOBS,
    signature=TICKETS,
    blobs=st.lists(st.binary(max_size=4), max_size=2).map(tuple),
    candidate=st.from_regex(r"[A-Za-z0-9._-]{0,64}", fullmatch=True),
)

CASES: dict[str, tuple[Codec[Any], st.SearchStrategy[Any]]] = {
    "register": (
        wire.REGISTER,
        st.builds(tracker_calls.Register, device=records.DEVICES, fence=FENCES, secret=TICKETS),
    ),
    "registered": (
        wire.REGISTERED,
        st.builds(tracker_calls.Registered, heartbeat_seconds=SECONDS),
    ),
    "heartbeat": (
        wire.HEARTBEAT,
        st.builds(
            tracker_calls.Heartbeat,
            name=NAMES,
            epoch=NAMES,
            resting=NAMES,
            quarantine=NAMES,
            usage=USAGES,
            refused=st.none()
            | st.builds(tracker_calls.RefusedRuns, edition=records.SMALL_COUNTS, runs=REFUSED_RUNS),
        ),
    ),
    "heartbeat_reply": (
        wire.HEARTBEAT_REPLY,
        st.builds(
            tracker_calls.HeartbeatReply,
            known=st.booleans(),
            quarantined=st.booleans(),
            readmissions=st.integers(0, 2**32 - 1),
            refused_edition=st.none() | records.SMALL_COUNTS,
        ),
    ),
    "deregister": (wire.DEREGISTER, REFS),
    "deregistered": (wire.DEREGISTERED, st.just(Empty())),
    "acquire": (
        wire.ACQUIRE,
        st.builds(
            tracker_calls.Acquire,
            request_id=NAMES,
            target=DIGESTS,
            labels=LABELS,
            wait_seconds=SECONDS,
            owner=NAMES,
            priority=PRIORITIES,
            job=NAMES,
        ),
    ),
    "acquired": (
        wire.ACQUIRED,
        st.builds(tracker_calls.Acquired, lease=st.none() | records.LEASES),
    ),
    "renew": (
        wire.RENEW,
        st.builds(tracker_calls.Renew, lease_id=NAMES, lends=st.booleans()),
    ),
    "renewed": (
        wire.RENEWED,
        st.builds(tracker_calls.Renewed, ttl_seconds=SECONDS, wanted_seconds=st.none() | SECONDS),
    ),
    "release": (
        wire.RELEASE,
        st.builds(tracker_calls.Release, lease_id=NAMES, device_lost=st.booleans(), why=NAMES),
    ),
    "released": (wire.RELEASED, st.just(Empty())),
    "list_devices": (wire.LIST_DEVICES, st.just(Empty())),
    "devices": (
        wire.DEVICES,
        st.builds(
            tracker_calls.Devices,
            states=st.lists(STATES, max_size=2).map(tuple),
            waiting=st.lists(WAITING, max_size=2).map(tuple),
        ),
    ),
    "list_refused_runs": (
        wire.LIST_REFUSED_RUNS,
        st.builds(tracker_calls.ListRefusedRuns, name=NAMES),
    ),
    "listed_refused_runs": (
        wire.LISTED_REFUSED_RUNS,
        st.builds(tracker_calls.ListedRefusedRuns, runs=REFUSED_RUNS),
    ),
    "drain": (wire.DRAIN, st.builds(tracker_calls.Drain, name=NAMES, why=NAMES)),
    "drained": (wire.DRAINED, st.just(Empty())),
    "readmit": (wire.READMIT, st.builds(tracker_calls.Readmit, name=NAMES)),
    "readmitted": (wire.READMITTED, st.just(Empty())),
    "get_capabilities": (wire.GET_CAPABILITIES, st.just(Empty())),
    "capabilities": (
        wire.CAPABILITIES,
        st.builds(
            device_calls.Capabilities,
            protocol=records.SMALL_COUNTS,
            protocol_minor=records.SMALL_COUNTS,
            name=NAMES,
            target=DIGESTS,
            runtime=NAMES,
            sandbox=NAMES,
            epoch=NAMES,
            max_blob_nbytes=COUNTS,
            self_test=NAMES,
        ),
    ),
    "find_missing": (wire.FIND_MISSING, DIGEST_LISTS),
    "missing": (wire.MISSING, DIGEST_LISTS),
    "query_write": (
        wire.QUERY_WRITE,
        st.builds(device_calls.QueryWrite, claim=records.CLAIMS, digest=DIGESTS),
    ),
    "committed": (wire.COMMITTED, st.builds(device_calls.Committed, nbytes=COUNTS)),
    "chunk": (wire.CHUNK, records.CHUNKS),
    "stored": (wire.STORED, st.builds(device_calls.Stored, nbytes=COUNTS)),
    "load_module": (
        wire.LOAD_MODULE,
        st.builds(
            device_calls.LoadModule, claim=records.CLAIMS, artifact=DIGESTS, signature=TICKETS
        ),
    ),
    "module_verdict": (
        wire.MODULE_VERDICT,
        st.builds(device_calls.ModuleVerdict, rejection=NAMES),
    ),
    "run": (wire.RUN, RUNS),
    "run_reply": (wire.RUN_REPLY, records.RUN_REPLIES),
    "run_batch": (
        wire.RUN_BATCH,
        st.builds(device_calls.RunBatch, st.lists(RUNS, min_size=1, max_size=3).map(tuple)),
    ),
    "run_batch_reply": (
        wire.RUN_BATCH_REPLY,
        st.builds(device_calls.RunBatchReply, st.lists(records.RUN_REPLIES, max_size=3).map(tuple)),
    ),
    "check": (wire.CHECK, st.builds(device_calls.Check, claim=records.CLAIMS)),
    "checked": (wire.CHECKED, st.just(Empty())),
    "read": (wire.READ, st.builds(device_calls.Read, digest=DIGESTS)),
    "piece": (wire.PIECE, st.builds(device_calls.Piece, st.binary(max_size=8))),
}


def test_every_codec_has_a_case() -> None:
    assert {name.lower() for name in codecs()} == set(CASES)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=examples(15))
@given(data=st.data())
def test_a_record_survives(name: str, data: st.DataObject) -> None:
    codec, strategy = CASES[name]
    record = data.draw(strategy)
    assert codec.decode(codec.encode(record)) == record


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=examples(40))
@given(noise=st.binary(max_size=60))
def test_noise_is_a_record_or_a_value_error(name: str, noise: bytes) -> None:
    codec, _ = CASES[name]
    try:
        record = codec.decode(noise)
    except ValueError:
        return
    codec.encode(record)


@given(st.data())
def test_mutated_runs_are_records_or_value_errors(data: st.DataObject) -> None:
    codec, strategy = CASES["run"]
    content = bytearray(codec.encode(data.draw(strategy)))
    for at in data.draw(st.lists(st.integers(0, max(len(content) - 1, 0)), max_size=3)):
        if content:
            content[at] ^= data.draw(st.integers(1, 255))
    try:
        codec.encode(codec.decode(bytes(content)))
    except ValueError:
        return


@pytest.mark.parametrize("runs", [0, device_calls.MOST_RUNS + 1])
def test_a_batch_is_neither_empty_nor_endless(runs: int) -> None:
    run = device_pb2.RunRequest(job=device_pb2.RunJob(artifact=bytes(32)))
    content = device_pb2.RunBatchRequest(runs=[run] * runs).SerializeToString()
    with pytest.raises(ValueError, match=f"{runs} runs, not 1..64"):
        wire.RUN_BATCH.decode(content)


def test_a_candidate_has_a_name_that_logs_may_hold() -> None:
    job = device_pb2.RunJob(artifact=bytes(32))
    content = device_pb2.RunRequest(job=job, candidate="two\nlines").SerializeToString()
    with pytest.raises(ValueError, match="candidate"):
        wire.RUN.decode(content)


@given(st.lists(records.EVENTS, max_size=4).map(tuple))
def test_a_timeline_survives_as_a_blob(events: tuple[Any, ...]) -> None:
    timeline = device_calls.Timeline(events)
    assert wire.TIMELINE.decode(wire.TIMELINE.encode(timeline)) == timeline


def test_a_record_that_its_message_cannot_hold_is_noticed_before_one_is_sent() -> None:
    with pytest.raises(TypeError, match=r"Precision\.error is no message"):
        codec(device_pb2.Precision, device_calls.RunBatchReply, replies="error")
    with pytest.raises(KeyError, match="ROLE_OK"):
        codec(device_pb2.BufferSpec, RunFailure, status="role")


def test_an_unspecified_status_is_refused() -> None:
    good = wire.RUN_REPLY.encode(
        device_calls.RunReply(
            outcome=RunFailure(artifact=Digest("0" * 64), status=Status.COMPILE_ERROR, why="")
        )
    )
    # Field 2 of the failure (tag 0x10) holds the status.
    assert b"\x10\x02" in good
    with pytest.raises(ValueError, match="no such enum value: 99"):
        wire.RUN_REPLY.decode(good.replace(b"\x10\x02", b"\x10\x63"))


def test_a_failure_that_ended_well_is_refused() -> None:
    failure = device_pb2.RunFailure(artifact=bytes(32), status=device_pb2.STATUS_OK)
    with pytest.raises(ValueError, match="ended well"):
        wire.RUN_REPLY.decode(device_pb2.RunResponse(failure=failure).SerializeToString())


def test_an_empty_reply_is_refused() -> None:
    with pytest.raises(ValueError, match="without an outcome"):
        wire.RUN_REPLY.decode(b"")


def test_an_older_device_has_a_counter() -> None:
    silent = tracker_pb2.DeviceInfo(name="board1", target=bytes(32))
    content = tracker_pb2.RegisterRequest(device=silent).SerializeToString()
    assert wire.REGISTER.decode(content).device.clock is DeviceClock.CYCLES


def test_zero_seconds_do_not_pass_for_a_time() -> None:
    message = device_pb2.Measurement(
        artifact=bytes(32), wall_time=device_pb2.WallTime(calls=1, regions=1)
    )
    with pytest.raises(ValueError, match="wall times"):
        wire.RUN_REPLY.decode(device_pb2.RunResponse(measurement=message).SerializeToString())
