"""Every record survives its way over the wire, and nothing else is taken for one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import records
from kit.records import COUNTS, DIGESTS, LABELS, NAMES, SECONDS, TICKETS
from tilefarm.digest import Digest
from tilefarm.measurement import Role, RunFailure, Status
from tilefarm.rpc import calls, wire

DIGEST_LISTS = st.lists(DIGESTS, max_size=3).map(tuple).map(calls.Digests)
REFS = st.builds(calls.DeviceRef, name=NAMES, epoch=NAMES)
USAGES = st.none() | st.builds(calls.Usage, runs=COUNTS, busy_seconds=SECONDS, up_seconds=SECONDS)
STATES = st.builds(
    calls.DeviceState,
    device=records.DEVICES,
    owner=NAMES,
    user=NAMES,
    leased_seconds=SECONDS,
    draining=NAMES,
    quarantine=NAMES,
    resting=NAMES,
    usage=USAGES,
    lately=USAGES,
)
PRIORITIES = st.integers(-(2**31), 2**31 - 1)
WAITING = st.builds(
    calls.Waiting, owner=NAMES, user=NAMES, priority=PRIORITIES, waited_seconds=SECONDS
)

CASES: dict[str, tuple[wire.Codec[Any], st.SearchStrategy[Any]]] = {
    "register": (
        wire.REGISTER,
        st.builds(calls.Register, device=records.DEVICES, fence=COUNTS, secret=TICKETS),
    ),
    "registered": (wire.REGISTERED, st.builds(calls.Registered, heartbeat_seconds=SECONDS)),
    "heartbeat": (
        wire.HEARTBEAT,
        st.builds(
            calls.Heartbeat,
            name=NAMES,
            epoch=NAMES,
            resting=NAMES,
            quarantine=NAMES,
            usage=USAGES,
        ),
    ),
    "heartbeat_reply": (
        wire.HEARTBEAT_REPLY,
        st.builds(
            calls.HeartbeatReply,
            known=st.booleans(),
            quarantined=st.booleans(),
            readmissions=st.integers(0, 2**32 - 1),
        ),
    ),
    "deregister": (wire.DEREGISTER, REFS),
    "deregistered": (wire.DEREGISTERED, st.just(calls.Nothing())),
    "acquire": (
        wire.ACQUIRE,
        st.builds(
            calls.Acquire,
            request_id=NAMES,
            target=DIGESTS,
            labels=LABELS,
            wait_seconds=SECONDS,
            owner=NAMES,
            priority=PRIORITIES,
            job=NAMES,
        ),
    ),
    "acquired": (wire.ACQUIRED, st.builds(calls.Acquired, lease=st.none() | records.LEASES)),
    "renew": (wire.RENEW, st.builds(calls.Renew, lease_id=NAMES, lends=st.booleans())),
    "renewed": (
        wire.RENEWED,
        st.builds(calls.Renewed, ttl_seconds=SECONDS, wanted_seconds=st.none() | SECONDS),
    ),
    "release": (
        wire.RELEASE,
        st.builds(calls.Release, lease_id=NAMES, device_lost=st.booleans(), why=NAMES),
    ),
    "released": (wire.RELEASED, st.just(calls.Nothing())),
    "list_devices": (wire.LIST_DEVICES, st.just(calls.Nothing())),
    "devices": (
        wire.DEVICES,
        st.builds(
            calls.Devices,
            states=st.lists(STATES, max_size=2).map(tuple),
            waiting=st.lists(WAITING, max_size=2).map(tuple),
        ),
    ),
    "drain": (wire.DRAIN, st.builds(calls.Drain, name=NAMES, why=NAMES)),
    "drained": (wire.DRAINED, st.just(calls.Nothing())),
    "readmit": (wire.READMIT, st.builds(calls.Readmit, name=NAMES)),
    "readmitted": (wire.READMITTED, st.just(calls.Nothing())),
    "get_capabilities": (wire.GET_CAPABILITIES, st.just(calls.Nothing())),
    "capabilities": (
        wire.CAPABILITIES,
        st.builds(
            calls.Capabilities,
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
        st.builds(calls.QueryWrite, claim=records.CLAIMS, digest=DIGESTS),
    ),
    "committed": (wire.COMMITTED, st.builds(calls.Committed, nbytes=COUNTS)),
    "chunk": (wire.CHUNK, records.CHUNKS),
    "stored": (wire.STORED, st.builds(calls.Stored, nbytes=COUNTS)),
    "load_module": (
        wire.LOAD_MODULE,
        st.builds(calls.LoadModule, claim=records.CLAIMS, artifact=DIGESTS, signature=TICKETS),
    ),
    "module_verdict": (wire.MODULE_VERDICT, st.builds(calls.ModuleVerdict, rejection=NAMES)),
    "run": (
        wire.RUN,
        st.builds(
            calls.Run, claim=records.CLAIMS, request_id=NAMES, job=records.JOBS, signature=TICKETS
        ),
    ),
    "run_reply": (wire.RUN_REPLY, records.RUN_REPLIES),
    "check": (wire.CHECK, st.builds(calls.Check, claim=records.CLAIMS)),
    "checked": (wire.CHECKED, st.just(calls.Nothing())),
    "read": (wire.READ, st.builds(calls.Read, digest=DIGESTS)),
    "piece": (wire.PIECE, st.builds(calls.Piece, st.binary(max_size=8))),
}


def test_every_codec_has_a_case() -> None:
    codecs = {name for name, value in vars(wire).items() if isinstance(value, wire.Codec)}
    assert {name.lower() for name in codecs} == set(CASES)


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_a_record_survives(name: str, data: st.DataObject) -> None:
    codec, strategy = CASES[name]
    record = data.draw(strategy)
    assert codec.decode(codec.encode(record)) == record


@pytest.mark.parametrize("name", CASES)
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


@given(st.lists(records.EVENTS, max_size=4).map(tuple))
def test_a_timeline_survives_as_a_blob(events: tuple[Any, ...]) -> None:
    assert wire.timeline_from_bytes(wire.timeline_to_bytes(events)) == events


def test_tables_of_enums_are_complete_and_one_to_one() -> None:
    assert set(wire.STATUSES) == set(Status)
    assert set(wire.ROLES) == set(Role)
    assert len(set(wire.STATUSES.values())) == len(Status)
    assert len(set(wire.ROLES.values())) == len(Role)
    assert 0 not in {*wire.STATUSES.values(), *wire.ROLES.values()}


def test_an_unspecified_status_is_refused() -> None:
    good = wire.RUN_REPLY.encode(
        calls.RunReply(outcome=RunFailure(artifact=Digest("0" * 64), status=Status.OK, why=""))
    )
    # Field 2 of the failure (tag 0x10) holds the status.
    assert b"\x10\x01" in good
    with pytest.raises(ValueError, match="no such enum value: 99"):
        wire.RUN_REPLY.decode(good.replace(b"\x10\x01", b"\x10\x63"))


def test_an_empty_reply_is_refused() -> None:
    with pytest.raises(ValueError, match="without an outcome"):
        wire.RUN_REPLY.decode(b"")
