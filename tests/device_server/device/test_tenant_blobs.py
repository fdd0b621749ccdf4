"""What one user has sent to a device, and what their runs gave, is not there for another user."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import grpc
import pytest
from kit.farm.in_process import FakeRunner, Farm, Server, calling, eventually
from kit.objects.elves import Elf
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import CorruptBlobError, FarmFault, LeaseError, MissingBlobError
from tilefarm.lease import Lease
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob
from tilefarm.rpc import device_calls, methods
from tilefarm.rpc.caller import Caller, authorization
from tilefarm.rpc.security import Security
from tilefarm.trust.access import FarmRole
from tilefarm.trust.tls import Credentials
from tilefarm.trust.tokens import TokenEntry, TokenTable, table_text

from device_server.device.client import DeviceClient
from device_server.tenancy import OWN, Tenancy
from device_server.tracker.client import TrackerClient
from driver.atomic_write import write_atomically

CODE, SECRET = Elf().build(), b"ann's images" * 100_000
BLOBS = {Digest.of(content): content for content in (CODE, SECRET)}
JOB = RunJob(
    artifact=Digest.of(CODE),
    entry="echo",
    buffers=(
        BufferSpec(name="x", role=Role.INPUT, nbytes=len(SECRET), content=Digest.of(SECRET)),
        BufferSpec(name="y", role=Role.OUTPUT, nbytes=len(SECRET), fetch=True),
    ),
)


@dataclass(slots=True)
class Curious(FakeRunner):
    """Gives inputs back to front.

    Looks at what is expected of outputs, as the real one does to say where they differ.
    """

    saw: list[bytes] = field(default_factory=list)

    def run(
        self, job: RunJob, blob: Callable[[Digest], Path], tenancy: Tenancy = OWN
    ) -> Measurement | RunFailure:
        for buffer in job.buffers if job.entry == "echo" else ():
            with contextlib.suppress(MissingBlobError):
                if buffer.expected is not None:
                    self.saw.append(blob(buffer.expected).read_bytes())
        outcome = FakeRunner.run(self, job, blob, tenancy)
        if isinstance(outcome, Measurement):
            reversed_ = tuple((name, content[::-1]) for name, content in outcome.outputs)
            return replace(outcome, outputs=reversed_)
        return outcome


@dataclass(slots=True)
class Tenants:
    """A device that is leased to one user after the other."""

    farm: Farm
    tracker: Server
    runner: Curious
    lease: Lease | None = None

    def come(self, user: str) -> DeviceClient:
        """A user's client of the device, under a new lease."""
        with TrackerClient(self.tracker.address, Credentials(token=user)) as tracker:
            self.lease = tracker.acquire(
                self.farm.target.digest, wait_seconds=60.0, owner=f"{user}'s net"
            )
        assert self.lease is not None
        return DeviceClient(self.lease, Credentials(token=user))

    def go(self, user: str) -> None:
        assert self.lease is not None
        with TrackerClient(self.tracker.address, Credentials(token=user)) as tracker:
            tracker.release(self.lease)


@pytest.fixture
def tenants(farm: Farm, tmp_path: Path) -> Tenants:
    roles = {"ann": FarmRole.SUBMIT, "bob": FarmRole.SUBMIT, "sim0": FarmRole.DEVICE}
    rows = tuple(
        TokenEntry(hash=Digest.of(user.encode()), user=user, role=role)
        for user, role in roles.items()
    )
    table = tmp_path / "tokens.json"
    write_atomically(table, table_text(rows).encode())
    farm.security = Security(tokens=TokenTable(table, SystemClock()))
    farm.credentials = Credentials(token="sim0")
    tracker = farm.tracker()
    runner = Curious()
    farm.device("sim0", tracker=tracker, runner=runner)
    return Tenants(farm, tracker, runner)


@contextmanager
def calls_of(user: str, client: DeviceClient) -> Iterator[Caller]:
    """Any call to the device that a user has leased."""
    with calling(client.lease.device.address, Credentials(token=user)) as caller:
        yield caller


def arrived(user: str, client: DeviceClient, digest: Digest) -> int:
    """Bytes of a blob that a user hears are there."""
    query = device_calls.QueryWrite(claim=device_calls.Claim.of(client.lease), digest=digest)
    with calls_of(user, client) as caller:
        return caller.unary(methods.QUERY_WRITE, query, timeout_seconds=60.0).nbytes


def left_by_ann(tenants: Tenants) -> tuple[Digest, ...]:
    """The blobs of a run of hers that went well, its output last."""
    with tenants.come("ann") as ann:
        ann.ensure(BLOBS)
        outcome = ann.run(JOB, request_id="r")
        assert isinstance(outcome, Measurement)
        ((_, output),) = outcome.outputs
        assert ann.read(Digest.of(output)) == output
    tenants.go("ann")
    return (*BLOBS, Digest.of(output))


def test_a_digest_gives_nobody_what_others_have_sent(tenants: Tenants) -> None:
    left = left_by_ann(tenants)
    with tenants.come("bob") as bob:
        asked = device_calls.Digests(left)
        with calls_of("bob", bob) as caller:
            missing = caller.unary(methods.FIND_MISSING, asked, timeout_seconds=60.0)
        assert missing.digests == left
        assert [arrived("bob", bob, digest) for digest in left] == [0, 0, 0]
        with pytest.raises(MissingBlobError):
            bob.load_module(Digest.of(CODE))
        with pytest.raises(MissingBlobError):
            bob.run(JOB, request_id="r")
        with pytest.raises(MissingBlobError):
            bob.run(JOB, request_id="code", blobs={Digest.of(CODE): CODE})
        with pytest.raises(FarmFault):
            bob.read(left[-1])


def test_who_sends_the_same_has_it_as_well(tenants: Tenants) -> None:
    left_by_ann(tenants)
    with tenants.come("bob") as bob:
        assert bob.ensure(BLOBS) == len(CODE) + len(SECRET)
        assert bob.ensure(BLOBS) == 0
        assert isinstance(bob.run(JOB, request_id="r"), Measurement)
    tenants.go("bob")
    with tenants.come("ann") as ann:
        assert ann.ensure(BLOBS) == 0, "hers are still there"


def test_what_was_expected_of_a_run_is_not_told_to_who_does_not_have_it(tenants: Tenants) -> None:
    """A mismatch tells the first byte that differs: byte by byte a stranger would read it all."""
    left_by_ann(tenants)
    secret = Digest.of(SECRET)
    guess = b"?" * len(SECRET)
    probe = replace(
        JOB,
        buffers=(
            replace(JOB.buffers[0], content=Digest.of(guess)),
            replace(JOB.buffers[1], expected=secret),
        ),
    )
    for user, seen in (("bob", []), ("ann", [SECRET])):
        with tenants.come(user) as client:
            client.ensure({Digest.of(CODE): CODE, Digest.of(guess): guess})
            client.run(probe, request_id="probe")
        tenants.go(user)
        assert tenants.runner.saw == seen


def test_an_upload_that_was_cut_short_is_finished_by_nobody_else(tenants: Tenants) -> None:
    digest, half = Digest.of(SECRET), len(SECRET) // 2
    for user in ("ann", "bob"):
        with tenants.come(user) as client:
            assert arrived(user, client, digest) == 0
            first = device_calls.Chunk(
                digest=digest,
                offset=0,
                data=SECRET[:half],
                finish=False,
                claim=device_calls.Claim.of(client.lease),
            )
            with (
                calls_of(user, client) as caller,
                pytest.raises(CorruptBlobError, match="ends after"),
            ):
                caller.upload(methods.WRITE, [first], timeout_seconds=60.0)
            assert arrived(user, client, digest) == half
        tenants.go(user)


def test_downloads_and_uploads_end_with_their_lease(tenants: Tenants) -> None:
    """Somebody who takes nothing of an answer, and sends nothing more, holds nothing."""
    large = bytes(32 << 20)
    with tenants.come("ann") as ann, grpc.insecure_channel(ann.lease.device.address) as channel:
        ann.ensure({Digest.of(large): large})
        metadata = authorization("ann")
        stalled = channel.unary_stream(methods.READ.path, bytes, bytes)(
            methods.READ.request.encode(device_calls.Read(digest=Digest.of(large))),
            timeout=100.0,
            metadata=metadata,
        )
        next(iter(stalled))
        chunk = device_calls.Chunk(
            digest=Digest.of(b"never whole"),
            offset=0,
            data=b"never",
            finish=False,
            claim=device_calls.Claim.of(ann.lease),
        )

        over = threading.Event()

        def slowly() -> Iterator[bytes]:
            yield methods.WRITE.request.encode(chunk)
            over.wait(30.0)

        upload = channel.stream_unary(methods.WRITE.path, bytes, bytes).future(
            slowly(), timeout=100.0, metadata=metadata
        )
        eventually(lambda: arrived("ann", ann, Digest.of(b"never whole")) == 5)
        tenants.go("ann")
        with tenants.come("bob") as bob:
            bob.ensure({Digest.of(b"bob's"): b"bob's"})
            failure = cast(grpc.Call, upload.exception())
            assert failure.code() is grpc.StatusCode.ABORTED
            with pytest.raises(grpc.RpcError) as cut:
                for _ in stalled:
                    pass
            assert cast(grpc.Call, cut.value).code() is grpc.StatusCode.ABORTED
        over.set()


def test_who_has_no_lease_reads_nothing(tenants: Tenants) -> None:
    left = left_by_ann(tenants)
    assert tenants.lease is not None
    with DeviceClient(tenants.lease, Credentials(token="ann")) as ann:
        with tenants.come("bob") as bob:
            bob.ensure({Digest.of(b"bob's"): b"bob's"})
        with pytest.raises(LeaseError, match="ann has no lease"):
            ann.read(left[-1])
