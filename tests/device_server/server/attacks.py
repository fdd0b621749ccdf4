"""What strangers, users and messages do to go beyond the bounds that all servers share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from io import StringIO
from typing import Any, Final, cast

import grpc
import pytest
from kit.farm.attacks import CODE, CUT, JOB, Found, Lab, attack, refused
from kit.farm.crowd import connect, silent_calls
from kit.farm.in_process import CREDENTIALS, TOKEN, calling, eventually
from kit.farm.parties import Parties
from kit.manual_clock import ManualClock
from prometheus_client import CollectorRegistry, generate_latest
from tilefarm.errors import AccessError, BusyError, UnreachableError
from tilefarm.measurement import BufferSpec, Role
from tilefarm.rpc import device_calls, listening, methods, tracker_calls
from tilefarm.rpc.authentication import Arrival, Authentication
from tilefarm.rpc.call_slots import MOST_OF_NEIGHBOURS, CallSlots
from tilefarm.rpc.caller import authorization
from tilefarm.rpc.served_call import Phase, ServedCall, served_in
from tilefarm.rpc.takeover import listening_sockets
from tilefarm.rpc.version import announcement
from tilefarm.trust.access import FarmRole, Identity
from tilefarm.watch import audit, metrics, prometheus
from tilefarm.watch.audit import AuditEntry, AuditFile, read_audit
from tilefarm.watch.log import LONGEST_VALUE, LineLog
from tilefarm.watch.prometheus import PrometheusMetrics

from device_server.device import server as device_server
from device_server.device import servicer
from device_server.server import rate_limited_log
from device_server.tracker import server as tracker_server
from device_server.tracker.client import TrackerClient

KNOWN: Final = (*authorization(TOKEN), *announcement())


def served(address: str) -> bool:
    """Whether somebody who is known is answered."""
    with TrackerClient(address, CREDENTIALS) as client:
        try:
            return client.devices() == []
        except (BusyError, UnreachableError):
            return False


def too_large(address: str, path: str, message: bytes, metadata: Any = KNOWN) -> Found:
    """What somebody finds who sends more than a server takes."""
    with grpc.insecure_channel(address) as channel:
        send = cast(Callable[..., Any], channel.unary_unary(path, bytes, bytes))
        with pytest.raises(grpc.RpcError) as error:
            send(message, timeout=60.0, metadata=metadata)
    assert cast(grpc.Call, error.value).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    return Found("refused: RESOURCE_EXHAUSTED", "who asks")


@attack("a request to a device")
def _(lab: Lab) -> Found:
    device = lab.farm.device()
    return too_large(device.address, methods.FIND_MISSING.path, bytes((4 << 20) + 1))


@attack("a request to a tracker")
def _(lab: Lab) -> Found:
    tracker = lab.farm.tracker()
    return too_large(tracker.address, methods.ACQUIRE.path, bytes((1 << 20) + 1))


@attack("headers of a call")
def _(lab: Lab) -> Found:
    long = (*KNOWN, ("x-long", "x" * (8 << 10)))
    return too_large(lab.farm.tracker().address, methods.LIST_DEVICES.path, b"", long)


@attack("calls at a time on a connection")
def _(lab: Lab) -> Found:
    tracker = lab.farm.tracker()
    with grpc.insecure_channel(tracker.address) as channel:
        start = cast(Any, channel.unary_unary(methods.ACQUIRE.path, bytes, bytes))
        wish = methods.ACQUIRE.request.encode(
            tracker_calls.Acquire(request_id="", target=JOB.artifact, wait_seconds=30.0, owner="x")
        )
        calls = [start.future(wish, timeout=30.0, metadata=KNOWN) for _ in range(140)]
        with TrackerClient(tracker.address, CREDENTIALS) as client:
            eventually(lambda: len(client.overview().waiting) == 128)
        for call in calls:
            call.cancel()
    return Found("wait", "nobody")


def _placed(lab: Lab, address: str, path: str, most: int) -> Found:
    with silent_calls(address, path, KNOWN, calls=most + 20) as calls:
        eventually(lambda: sum(call.done() for call in calls) == 20)
        (code,) = {call.code() for call in calls if call.done()}
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert lab.logged("over_bounds")
    return Found("refused: `BusyError`", "who asks, and the server's log (`over_bounds`)")


@attack("calls at a time at a tracker")
def _(lab: Lab) -> Found:
    lab.patch.setattr(tracker_server, "MOST_CALLS", 20)
    return _placed(lab, lab.farm.tracker().address, methods.ACQUIRE.path, 20)


@attack("calls at a time at a device")
def _(lab: Lab) -> Found:
    lab.patch.setattr(device_server, "MOST_CALLS", 20)
    return _placed(lab, lab.farm.device().address, methods.WRITE.path, 20)


@attack("calls without a token, of one method")
def _(lab: Lab) -> Found:
    places = CallSlots(2)
    with ExitStack() as owned:
        for _ in range(MOST_OF_NEIGHBOURS):
            owned.enter_context(places.one_for_neighbours("Check"))
        found = refused(lambda: owned.enter_context(places.one_for_neighbours("Check")), "Check")
        owned.enter_context(places.one_for_neighbours("Watch"))
        owned.enter_context(places.one_for("ann"))
    return found


def _crowded(lab: Lab, address: str, answers: Callable[[str], bool]) -> Found:
    with ExitStack() as owned:
        for _ in range(200):
            with suppress(OSError):  # refused at once
                owned.enter_context(connect(address))
        eventually(lambda: answers(address))
    assert lab.logged("crowded")
    return Found("strangers' are ended within half a second", "the server's log (`crowded`)")


def _knows(address: str) -> bool:
    """Whether a device answers who is known."""
    with grpc.insecure_channel(address) as channel:
        ask = cast(Callable[..., Any], channel.unary_unary)
        try:
            method = ask(methods.GET_CAPABILITIES.path, bytes, bytes)
            return bool(method(b"", timeout=1.0, metadata=KNOWN))
        except grpc.RpcError:
            return False


@attack("connections of a tracker")
def _(lab: Lab) -> Found:
    lab.patch.setattr(tracker_server, "MOST_CONNECTIONS", 64)
    return _crowded(lab, lab.farm.tracker().address, served)


@attack("connections of a device")
def _(lab: Lab) -> Found:
    lab.patch.setattr(device_server, "MOST_CONNECTIONS", 64)
    return _crowded(lab, lab.farm.device().address, _knows)


@attack("runs of one call")
def _(lab: Lab) -> Found:
    with lab.device() as client:
        run = device_calls.Run(claim=device_calls.Claim.of(client.lease), request_id="r", job=JOB)
        batch = device_calls.RunBatch((run,))
        object.__setattr__(batch, "runs", (run,) * 65)  # as whoever writes the bytes without it
        with calling(client.lease.device.address) as caller:
            ask = partial(caller.unary, methods.RUN_BATCH, timeout_seconds=60.0)
            return refused(lambda: ask(batch), "65 runs, not 1..64")


@attack("bytes of the replies of one call")
def _(lab: Lab) -> Found:
    lab.patch.setattr(servicer, "MOST_BATCH_NBYTES", 1)
    with lab.device() as client:
        claim = device_calls.Claim.of(client.lease)
        client.ensure({JOB.artifact: CODE})
        runs = tuple(device_calls.Run(claim=claim, request_id=f"r{n}", job=JOB) for n in range(3))
        with calling(client.lease.device.address) as caller:
            ask = partial(caller.unary, methods.RUN_BATCH, timeout_seconds=60.0)
            answered = ask(device_calls.RunBatch(runs))
    assert len(answered.replies) == 1
    return Found("the next runs are not begun", "who asks")


@attack("phases of a call")
def _(lab: Lab) -> Found:
    phase = Phase(name="p" * 100, began_seconds=0.0, ended_seconds=1.0)
    told = ServedCall(component="c", arrived_seconds=0.0, seconds=1.0, phases=(phase,) * 17)
    heard = served_in([("tilefarm-served-bin", told.to_bytes())])
    assert heard is not None
    assert len(heard.phases) == 16
    return Found("the first are told", "who asks")


def knock(door: Authentication, times: int, user: str, path: str = "/x") -> None:
    said = Arrival(path=path, authorization="Bearer " + user, certificate=None, peer="p", pem=b"")
    for _ in range(times):
        with pytest.raises(AccessError):
            door.admit(None, said)


class _Tokens:
    """One user, called ann."""

    def identity_of(self, token: str) -> Identity:
        if token != "ann":
            raise AccessError("nobody", "be somebody")
        return Identity(user="ann", roles=frozenset({FarmRole.READ}))


def refusals(user: str) -> list[AuditEntry]:
    entries: list[AuditEntry] = []
    door, most = (
        Authentication(_Tokens(), audit=entries.append, clock=(clock := ManualClock())),
        100,
    )
    knock(door, most + 50, user, path="/" + "x" * 5000)
    assert len(entries) == most
    clock.advance(1.0)
    knock(door, 2, user)
    assert len(entries) == most + 1
    assert entries[-1].why.endswith("(50 refusals before it are not noted)")
    return entries


@attack("refusals that are noted at once")
def _(lab: Lab) -> Found:
    assert not refusals("stranger")[0].user
    assert refusals("ann")[0].user == "ann"
    return Found("counted, and one a second noted", "the audit")


@attack("a path in the audit")
def _(lab: Lab) -> Found:
    assert {len(entry.method) for entry in refusals("ann")} == {200, 2}
    return CUT


@attack("a reason in the audit")
def _(lab: Lab) -> Found:
    assert len(refusals("ann")[0].why) == 2000
    return CUT


@attack("a subject in the audit")
def _(lab: Lab) -> Found:
    entries: list[AuditEntry] = []
    door = Authentication(_Tokens(), audit=entries.append, clock=ManualClock())
    said = Arrival(path="/x", authorization="", certificate=None, peer="p")
    ann = Identity(user="ann", roles=frozenset())
    door.note(methods.RUN_BATCH, said, ann, "s" * 10_000)
    assert len(entries[0].subject) == 8192
    return CUT


@attack("a client's own words in the audit")
def _(lab: Lab) -> Found:
    assert methods.RELEASE.subject is not None
    lost = tracker_calls.Release(lease_id="l", device_lost=True, why="w" * 1000)
    assert methods.RELEASE.subject(lost).endswith(": " + "w" * 300)
    return CUT


def entry(why: str) -> AuditEntry:
    return AuditEntry(
        at_seconds=1.0, user="u", roles="", peer="", method="m", allowed=False, why=why
    )


def audited(lab: Lab, entries: int) -> list[str]:
    lab.patch.setattr(audit, "MOST_AUDIT_NBYTES", 400)
    file = lab.folder / "audit.jsonl"
    keep = AuditFile(file, lab.farm.log)
    for number in range(entries):
        keep(entry(f"{number}"))
    for kept in lab.folder.iterdir():
        assert kept.stat().st_size <= 400
        assert kept.stat().st_mode & 0o777 == 0o600
    return [entry.why for entry in read_audit(file)]


@attack("a file of the audit")
def _(lab: Lab) -> Found:
    assert audited(lab, 12) == [str(number) for number in range(12)]
    assert not lab.logged("audit_forgets")
    return Found("another one is begun", "nobody")


@attack("older files of the audit")
def _(lab: Lab) -> Found:
    kept = audited(lab, 100)
    assert kept == [str(number) for number in range(100 - len(kept), 100)]
    assert len(list(lab.folder.iterdir())) == 1 + audit.MOST_OLDER_AUDITS
    assert lab.logged("audit_forgets")
    return Found("the oldest one is forgotten", "the server's log (`audit_forgets`)")


@attack("a value in a log line")
def _(lab: Lab) -> Found:
    stream = StringIO()
    LineLog("c", stream)("said", words="b" + "x" * 9000 + "e", number=2**70)
    line = stream.getvalue()
    assert LONGEST_VALUE < len(line) < LONGEST_VALUE + 200
    assert ("words=" in line, "bxx" in line, "xxe" in line) == (True,) * 3
    assert str(2**70) in line
    return Found("cut in its middle", "whoever reads it")


@attack("lines of one event in a log, at once")
def _(lab: Lab) -> Found:
    events: list[dict[str, object]] = []
    clock = ManualClock()
    log = rate_limited_log.rate_limited(lambda event, **fields: events.append(fields), clock)
    for _ in range(rate_limited_log.MOST_LINES_AT_ONCE + 7):
        log("ran")
    log("other")
    assert len(events) == rate_limited_log.MOST_LINES_AT_ONCE + 1
    clock.advance(1 / rate_limited_log.LINES_PER_SECOND)
    log("ran")
    log("ran")
    assert [fields.get("not_told") for fields in events[-2:]] == [None, 7]
    return Found("counted, and 500 a second told", "the server's log (`not_told`)")


@attack("series of a metric")
def _(lab: Lab) -> Found:
    lab.patch.setattr(prometheus, "MOST_SERIES", 3)
    registry = CollectorRegistry()
    kept = PrometheusMetrics(metrics.TRACKER_METRICS, registry)
    for number in range(9):
        kept.add(metrics.DEVICE_RUNS, 1.0, device=f"d{number}")
    kept.add(metrics.DEVICE_RUNS, 1.0, device="d1")
    page = generate_latest(registry).decode()
    assert 'tilefarm_device_runs_total{device="others"} 6.0' in page
    assert 'tilefarm_device_runs_total{device="d1"} 2.0' in page
    assert page.count("tilefarm_device_runs_total{") == 4
    return Found("counted as `others`", "whoever reads it")


@attack("calls at a time at a server, strangers' included")
def _(lab: Lab) -> Found:
    lab.patch.setattr(listening, "MOST_CALLS", 10)
    tracker = lab.farm.tracker()
    with silent_calls(tracker.address, methods.ACQUIRE.path, KNOWN, calls=30) as calls:
        eventually(lambda: sum(call.done() for call in calls) == 20)
        (code,) = {call.code() for call in calls if call.done()}
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    return Found("refused: RESOURCE_EXHAUSTED", "who asks")


def _rotated(lab: Lab, times: int) -> bool:
    return len(lab.logged("certificates")) == times


@attack("servers at one port, under earlier certificates")
def _(lab: Lab) -> Found:
    lab.patch.setattr(listening, "MOST_SERVERS", 2)
    parties = Parties(lab.folder)
    hub = parties.issue(FarmRole.TRACKER, "hub")
    lab.farm.security = parties.security(hub)
    port = int(lab.farm.tracker().address.rpartition(":")[2])
    for rotations in range(1, 5):
        parties.issue(FarmRole.TRACKER, "hub", out=hub)
        eventually(partial(_rotated, lab, rotations))
    eventually(lambda: listening_sockets(port) == 2)
    return Found("the oldest is stopped", "the server's log (`certificates`), of each new one")


@attack("an amount in a message")
def _(lab: Lab) -> Found:
    with lab.device() as client:
        huge = BufferSpec(name="y", role=Role.OUTPUT, nbytes=(1 << 53) + 1)
        job = replace(JOB, buffers=(huge,))
        return refused(lambda: client.run(job, request_id="r"), "nbytes is 9007199254740993")
