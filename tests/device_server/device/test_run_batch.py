"""Several runs in one call: which are answered, which are begun, and what is told of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from kit.farm.in_process import CREDENTIALS, FakeRunner, Farm
from kit.objects.elves import Elf
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import InfraError, LeaseError, MissingBlobError
from tilefarm.lease import Lease
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob, Status
from tilefarm.rpc import device_calls, methods
from tilefarm.rpc.caller import CHUNK_NBYTES, Caller
from tilefarm.rpc.device_calls import RunReply
from tilefarm.rpc.served_call import Exchange
from tilefarm.rpc.timing import Watch, watching
from tilefarm.rpc.version import Version
from tilefarm.watch.trace_context import TraceContext, current_context, doing

from device_server.device import served_device, servicer
from device_server.device.batch import Ask
from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient

DATA = b"data" * 20


def code(number: int, nbytes: int = 0) -> bytes:
    return Elf(payload=bytes([number]) + bytes(nbytes)).build()


def ask(number: int, entry: str = "echo", *, nbytes: int = 0, brings: bool = True) -> Ask:
    """A run of its own artifact on the data that all have."""
    content = code(number, nbytes)
    x = BufferSpec(name="x", role=Role.INPUT, nbytes=len(DATA), content=Digest.of(DATA))
    y = BufferSpec(name="y", role=Role.OUTPUT, nbytes=len(DATA), fetch=True)
    job = RunJob(artifact=Digest.of(content), entry=entry, buffers=(x, y), timeout_seconds=60.0)
    blobs = {Digest.of(blob): blob for blob in (content, DATA)} if brings else {}
    return Ask(job=job, request_id=f"r{number}", blobs=blobs, candidate=f"c{number}")


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.fixture
def client(farm: Farm, runner: FakeRunner) -> Iterator[DeviceClient]:
    with DeviceClient(leased(farm, runner), CREDENTIALS) as made:
        made.send_ahead({})  # It has asked whom it speaks to.
        yield made


def leased(farm: Farm, runner: FakeRunner) -> Lease:
    tracker = farm.tracker()
    farm.device(tracker=tracker, runner=runner)
    with TrackerClient(tracker.address, CREDENTIALS) as told:
        lease = told.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
    assert lease is not None
    return lease


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What clients call from now on, with how many blobs for each run."""
    seen: list[str] = []
    real = Caller.unary

    def call(caller: Caller, method: Any, said: Any, **more: Any) -> Any:
        runs = {methods.RUN: [said], methods.RUN_BATCH: getattr(said, "runs", ())}.get(method, ())
        seen.append(" ".join([method.name, *(str(len(run.blobs)) for run in runs)]))
        return real(caller, method, said, **more)

    monkeypatch.setattr(Caller, "unary", call)
    return seen


def good(answers: Sequence[RunReply]) -> list[int]:
    """After how many unchecked runs each gave its data back."""
    for each in answers:
        assert isinstance(each.outcome, Measurement)
        assert dict(each.outcome.outputs) == {"y": DATA}
    return [each.unchecked for each in answers]


def entries(runner: FakeRunner) -> list[str]:
    return [job.entry for job in runner.seen]


def test_all_are_run_in_one_call_in_which_nothing_comes_twice(
    client: DeviceClient, runner: FakeRunner, called: list[str]
) -> None:
    assert good(client.run_batch([ask(1), ask(2), ask(3)])) == [1, 2, 3]
    assert called[0] == "RunBatch 2 1 1"
    assert [job.artifact for job in runner.seen] == [Digest.of(code(n)) for n in (1, 2, 3)]
    called.clear()
    assert good(client.run_batch([replace(ask(1), request_id="r4"), ask(5)])) == [4, 5]
    assert called[0] == "RunBatch 0 1"


def test_what_was_answered_is_not_run_again(client: DeviceClient, runner: FakeRunner) -> None:
    both = client.run_batch([ask(1), ask(2)])
    assert client.run_batch([ask(1), ask(2)]) == both
    assert client.run_batch([ask(2)]) == both[1:]
    assert len(runner.seen) == 2


def test_one_that_is_no_run_ends_the_batch_and_is_told_when_it_comes_first(
    client: DeviceClient, runner: FakeRunner
) -> None:
    asked = [ask(1), ask(2, brings=False), ask(3)]
    assert good(client.run_batch(asked)) == [1]
    with pytest.raises(MissingBlobError, match=Digest.of(code(2)).short):
        client.run_batch(asked[1:])
    assert len(runner.seen) == 1
    assert good(client.run_batch(asked[2:])) == [2]


def test_how_a_kernel_ends_does_not_end_the_batch(client: DeviceClient) -> None:
    first, second = client.run_batch([ask(1, "crash"), ask(2)])
    assert isinstance(first.outcome, RunFailure)
    assert first.outcome.status is Status.RUN_CRASH
    assert good([second]) == [1], "the known kernel has run after the crash"


def test_what_the_device_spoils_ends_it(client: DeviceClient, runner: FakeRunner) -> None:
    (first,) = client.run_batch([ask(1, "broken"), ask(2)])
    assert isinstance(first.outcome, RunFailure)
    assert first.outcome.status is Status.INFRA_ERROR
    assert entries(runner) == ["broken"]


def test_none_begins_when_the_call_has_lasted_long(
    client: DeviceClient, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servicer, "BATCH_SECONDS", 0.15)
    assert len(client.run_batch([ask(1, "slow"), ask(2)])) == 1
    assert entries(runner) == ["slow"]


def test_who_has_lost_the_device_begins_none(client: DeviceClient, runner: FakeRunner) -> None:
    stale = replace(client.lease, ticket=b"made up")
    with DeviceClient(stale, CREDENTIALS) as other, pytest.raises(LeaseError):
        other.run_batch([ask(1), ask(2)])
    assert not runner.seen


def test_more_than_a_message_should_bring_is_for_the_next_call(
    client: DeviceClient, called: list[str]
) -> None:
    nbytes = CHUNK_NBYTES // 3
    asked = [ask(n, nbytes=nbytes) for n in (1, 2, 3, 4)]
    assert len(client.run_batch(asked)) == 2
    assert called[0] == "RunBatch 2 1"


def test_a_device_of_the_version_before_is_asked_one_by_one(
    farm: Farm, runner: FakeRunner, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_device, "PROTOCOL", Version(2, 3))
    with DeviceClient(leased(farm, runner), CREDENTIALS) as client:
        assert good(client.run_batch([ask(1), ask(2)])) == [1]
        assert good(client.run_batch([ask(2)])) == [2]
    assert [call for call in called if call.startswith("Run")] == ["Run 2", "Run 1"]


def test_a_device_that_answers_more_than_was_asked_is_out_of_protocol(
    client: DeviceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Caller.unary

    def call(caller: Caller, method: Any, said: Any, **more: Any) -> Any:
        reply = real(caller, method, said, **more)
        if method is methods.RUN_BATCH:
            return device_calls.RunBatchReply(reply.replies * 2)
        return reply

    monkeypatch.setattr(Caller, "unary", call)
    with pytest.raises(InfraError, match="device sim0 gives 4 answers to 2 runs"):
        client.run_batch([ask(1), ask(2)])


def test_each_run_is_logged_and_traced_as_its_candidates(
    farm: Farm, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[tuple[str, TraceContext | None]] = []
    monkeypatch.setattr(farm, "log", lambda event, **_: logged.append((event, current_context())))
    calls: list[Exchange] = []
    lease, work = leased(farm, runner), TraceContext.of("run-1")
    with (
        doing(work),
        watching(Watch(calls.append, SystemClock())),
        DeviceClient(lease, CREDENTIALS) as client,
    ):
        client.run_batch([ask(1), ask(2)])
    expected = [work.about("c1", "r1"), work.about("c2", "r2")]
    assert [work for event, work in logged if event == "ran"] == expected
    whole, *_ = [call for call in calls if call.method == "RunBatch"]
    parts = [call for call in calls if call.method == "Run"]
    assert [part.work for part in parts] == expected
    for part in parts:
        assert {"queue", "run"} <= {phase.name for phase in part.served.phases}
        assert part.served.component == "sim0"
        assert part.served.caller == whole.served.caller
        assert part.served.arrived_seconds >= whole.served.arrived_seconds
        assert part.served.seconds <= whole.served.seconds
        assert part.sent_seconds <= whole.sent_seconds
    assert not whole.served.phases, "they are told of the runs"


def test_nothing_is_timed_for_nobody(client: DeviceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    replies: list[device_calls.RunReply] = []
    real = Caller.unary

    def call(caller: Caller, method: Any, said: Any, **more: Any) -> Any:
        reply = real(caller, method, said, **more)
        replies.extend(reply.replies if method is methods.RUN_BATCH else ())
        return reply

    monkeypatch.setattr(Caller, "unary", call)
    client.run_batch([ask(1), ask(2)])
    assert [reply.served for reply in replies] == [b"", b""]


def test_the_audit_names_every_artifact_of_a_batch() -> None:
    claim = device_calls.Claim(lease_id="l7", fence=1, epoch="e")
    runs = tuple(
        device_calls.Run(claim=claim, request_id=one.request_id, job=one.job)
        for one in (ask(1), ask(2))
    )
    assert methods.RUN_BATCH.subject is not None
    told = methods.RUN_BATCH.subject(device_calls.RunBatch(runs))
    assert told == ", ".join(f"{Digest.of(code(n)).hex} under l7" for n in (1, 2))
