"""Every record survives its way over the wire, and nothing else is taken for one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.messages import records
from kit.messages.records import COUNTS, DIGESTS, FENCES, LABELS, NAMES, SECONDS, TICKETS
from kit.messages.specimens import codecs
from tilefarm.digest import Digest
from tilefarm.measurement import DeviceClock, Role, RunFailure, Status
from tilefarm.rpc import (
    device_calls,
    device_wire,
    lease_wire,
    run_wire,
    tracker_calls,
    tracker_wire,
)
from tilefarm.rpc.codec import Codec
from tilefarm.rpc.nothing import Nothing
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
        tracker_wire.REGISTER,
        st.builds(tracker_calls.Register, device=records.DEVICES, fence=FENCES, secret=TICKETS),
    ),
    "registered": (
        tracker_wire.REGISTERED,
        st.builds(tracker_calls.Registered, heartbeat_seconds=SECONDS),
    ),
    "heartbeat": (
        tracker_wire.HEARTBEAT,
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
        tracker_wire.HEARTBEAT_REPLY,
        st.builds(
            tracker_calls.HeartbeatReply,
            known=st.booleans(),
            quarantined=st.booleans(),
            readmissions=st.integers(0, 2**32 - 1),
            refused_edition=st.none() | records.SMALL_COUNTS,
        ),
    ),
    "deregister": (tracker_wire.DEREGISTER, REFS),
    "deregistered": (tracker_wire.DEREGISTERED, st.just(Nothing())),
    "acquire": (
        tracker_wire.ACQUIRE,
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
        tracker_wire.ACQUIRED,
        st.builds(tracker_calls.Acquired, lease=st.none() | records.LEASES),
    ),
    "renew": (
        tracker_wire.RENEW,
        st.builds(tracker_calls.Renew, lease_id=NAMES, lends=st.booleans()),
    ),
    "renewed": (
        tracker_wire.RENEWED,
        st.builds(tracker_calls.Renewed, ttl_seconds=SECONDS, wanted_seconds=st.none() | SECONDS),
    ),
    "release": (
        tracker_wire.RELEASE,
        st.builds(tracker_calls.Release, lease_id=NAMES, device_lost=st.booleans(), why=NAMES),
    ),
    "released": (tracker_wire.RELEASED, st.just(Nothing())),
    "list_devices": (tracker_wire.LIST_DEVICES, st.just(Nothing())),
    "devices": (
        tracker_wire.DEVICES,
        st.builds(
            tracker_calls.Devices,
            states=st.lists(STATES, max_size=2).map(tuple),
            waiting=st.lists(WAITING, max_size=2).map(tuple),
        ),
    ),
    "list_refused_runs": (
        tracker_wire.LIST_REFUSED_RUNS,
        st.builds(tracker_calls.ListRefusedRuns, name=NAMES),
    ),
    "listed_refused_runs": (
        tracker_wire.LISTED_REFUSED_RUNS,
        st.builds(tracker_calls.ListedRefusedRuns, runs=REFUSED_RUNS),
    ),
    "drain": (tracker_wire.DRAIN, st.builds(tracker_calls.Drain, name=NAMES, why=NAMES)),
    "drained": (tracker_wire.DRAINED, st.just(Nothing())),
    "readmit": (tracker_wire.READMIT, st.builds(tracker_calls.Readmit, name=NAMES)),
    "readmitted": (tracker_wire.READMITTED, st.just(Nothing())),
    "get_capabilities": (device_wire.GET_CAPABILITIES, st.just(Nothing())),
    "capabilities": (
        device_wire.CAPABILITIES,
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
    "find_missing": (device_wire.FIND_MISSING, DIGEST_LISTS),
    "missing": (device_wire.MISSING, DIGEST_LISTS),
    "query_write": (
        device_wire.QUERY_WRITE,
        st.builds(device_calls.QueryWrite, claim=records.CLAIMS, digest=DIGESTS),
    ),
    "committed": (device_wire.COMMITTED, st.builds(device_calls.Committed, nbytes=COUNTS)),
    "chunk": (device_wire.CHUNK, records.CHUNKS),
    "stored": (device_wire.STORED, st.builds(device_calls.Stored, nbytes=COUNTS)),
    "load_module": (
        device_wire.LOAD_MODULE,
        st.builds(
            device_calls.LoadModule, claim=records.CLAIMS, artifact=DIGESTS, signature=TICKETS
        ),
    ),
    "module_verdict": (
        device_wire.MODULE_VERDICT,
        st.builds(device_calls.ModuleVerdict, rejection=NAMES),
    ),
    "run": (device_wire.RUN, RUNS),
    "run_reply": (device_wire.RUN_REPLY, records.RUN_REPLIES),
    "run_batch": (
        device_wire.RUN_BATCH,
        st.builds(device_calls.RunBatch, st.lists(RUNS, min_size=1, max_size=3).map(tuple)),
    ),
    "run_batch_reply": (
        device_wire.RUN_BATCH_REPLY,
        st.builds(device_calls.RunBatchReply, st.lists(records.RUN_REPLIES, max_size=3).map(tuple)),
    ),
    "check": (device_wire.CHECK, st.builds(device_calls.Check, claim=records.CLAIMS)),
    "checked": (device_wire.CHECKED, st.just(Nothing())),
    "read": (device_wire.READ, st.builds(device_calls.Read, digest=DIGESTS)),
    "piece": (device_wire.PIECE, st.builds(device_calls.Piece, st.binary(max_size=8))),
}


def test_every_codec_has_a_case() -> None:
    assert {name.lower() for name in codecs()} == set(CASES)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=40)
@given(data=st.data())
def test_a_record_survives(name: str, data: st.DataObject) -> None:
    codec, strategy = CASES[name]
    record = data.draw(strategy)
    assert codec.decode(codec.encode(record)) == record


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=40)
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
    content = device_pb2.RunBatchRequest(runs=[device_pb2.RunRequest()] * runs).SerializeToString()
    with pytest.raises(ValueError, match=f"{runs} runs, not 1..64"):
        device_wire.RUN_BATCH.decode(content)


def test_a_candidate_has_a_name_that_logs_may_hold() -> None:
    content = device_pb2.RunRequest(candidate="two\nlines").SerializeToString()
    with pytest.raises(ValueError, match="candidate"):
        device_wire.RUN.decode(content)


@given(st.lists(records.EVENTS, max_size=4).map(tuple))
def test_a_timeline_survives_as_a_blob(events: tuple[Any, ...]) -> None:
    assert run_wire.timeline_from_bytes(run_wire.timeline_to_bytes(events)) == events


def test_tables_of_enums_are_complete_and_one_to_one() -> None:
    assert set(run_wire.STATUSES) == set(Status)
    assert set(run_wire.ROLES) == set(Role)
    assert len(set(run_wire.STATUSES.values())) == len(Status)
    assert len(set(run_wire.ROLES.values())) == len(Role)
    assert 0 not in {*run_wire.STATUSES.values(), *run_wire.ROLES.values()}


def test_an_unspecified_status_is_refused() -> None:
    good = device_wire.RUN_REPLY.encode(
        device_calls.RunReply(
            outcome=RunFailure(artifact=Digest("0" * 64), status=Status.OK, why="")
        )
    )
    # Field 2 of the failure (tag 0x10) holds the status.
    assert b"\x10\x01" in good
    with pytest.raises(ValueError, match="no such enum value: 99"):
        device_wire.RUN_REPLY.decode(good.replace(b"\x10\x01", b"\x10\x63"))


def test_an_empty_reply_is_refused() -> None:
    with pytest.raises(ValueError, match="without an outcome"):
        device_wire.RUN_REPLY.decode(b"")


def test_clocks_have_numbers_and_an_older_device_has_a_counter() -> None:
    assert set(lease_wire.CLOCKS) == set(DeviceClock)
    assert len(set(lease_wire.CLOCKS.values())) == len(DeviceClock)
    silent = tracker_pb2.DeviceInfo(name="board1", target=bytes(32))
    assert lease_wire.device_from_wire(silent).clock is DeviceClock.CYCLES


def test_zero_seconds_do_not_pass_for_a_time() -> None:
    message = device_pb2.Measurement(
        artifact=bytes(32), wall_time=device_pb2.WallTime(calls=1, regions=1)
    )
    with pytest.raises(ValueError, match="wall times"):
        run_wire.measurement_from_wire(message)
