"""What somebody with a lease, or a kernel, does to go beyond the bounds of a device."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Final

import pytest
from kit.farm.attacks import (
    CODE,
    CUT,
    FORGOTTEN,
    JOB,
    Found,
    Lab,
    attack,
    refused,
    refused_by_server,
)
from kit.manual_clock import ManualClock
from kit.objects.elves import Elf
from tilefarm.digest import Digest
from tilefarm.errors import AnswerError, BusyError, CapacityError, InfraError
from tilefarm.measurement import BufferSpec, Role, RunFailure, RunJob, Status, WallTime
from tilefarm.rpc.device_calls import RunReply

from device_server.device import elf, executor, quarantined
from device_server.device.blob_store import BlobStore, StoreLimits
from device_server.device.clock_history import ClockHistory
from device_server.device.elf import Machine
from device_server.device.idempotency_cache import IdempotencyCache
from device_server.device.quarantined import QuarantinedRuns
from device_server.device.tenant_blobs import Senders
from device_server.device.upload_statistics import UploadStatistics
from device_server.device.uploads import MOST_CUT
from device_server.runner.frames import LONGEST_TEXT, MOST_EVENTS, FailedReply, read_reply
from device_server.runner.last_words import LastWords
from device_server.tenancy import OWN

KIB: Final = 1 << 10
FAILED: Final = RunReply(
    outcome=RunFailure(artifact=JOB.artifact, status=Status.RUN_CRASH, why="x")
)


def refused_run(lab: Lab, match: str, *runs: RunJob) -> Found:
    """What somebody finds whose runs ask for more than a device gives."""
    with lab.device() as client:
        client.ensure({JOB.artifact: CODE})
        for job in runs:
            found = refused_by_server(lab, partial(client.run, job, request_id="r"), match)
    return found


def buffer(role: Role, nbytes: int, name: str = "y") -> BufferSpec:
    return BufferSpec(name=name, role=role, nbytes=nbytes)


@attack("bytes of a device's blobs, uploads under way included")
def _(lab: Lab) -> Found:
    limits = StoreLimits(total_nbytes=30 * KIB, blob_nbytes=20 * KIB)
    with BlobStore(lab.folder, limits) as store, ExitStack() as uploads:
        kept = store.put(b"k" * 10 * KIB)
        with store.write(Digest.of(b"cut short")) as cut:
            cut.append(0, b"c" * 5 * KIB)
        for name in (b"a", b"b"):
            uploads.enter_context(store.write(Digest.of(name))).append(0, name * 12 * KIB)
        assert store.missing([kept]) == (kept,), "blobs that nobody uses leave first"
        assert store.committed(Digest.of(b"cut short")) == 5 * KIB
        third = uploads.enter_context(store.write(Digest.of(b"d")))
        third.append(0, b"d" * 6 * KIB)
        assert store.committed(Digest.of(b"cut short")) == 0, "then what was cut short"
        taken = sum(file.stat().st_size for file in lab.folder.rglob("*") if file.is_file())
        assert taken == 30 * KIB
        with pytest.raises(CapacityError, match="does not fit"):
            store.put(b"p" * KIB)

        def upload() -> None:
            with store.write(Digest.of(b"e")) as writer:
                writer.append(0, b"e" * KIB)

        found = refused(upload, "the store holds at most")
        assert not (lab.folder / "incoming" / Digest.of(b"e").hex).exists()
    return Found(f"the oldest leave; if all are in use, {found.beyond}", found.heard)


@attack("a blob")
def _(lab: Lab) -> Found:
    with BlobStore(lab.folder, StoreLimits(blob_nbytes=KIB)) as store:
        with pytest.raises(CapacityError):
            store.put(b"x" * (KIB + 1))
        with store.write(Digest.of(b"x")) as writer:
            writer.append(0, b"x" * KIB)
            return refused(lambda: writer.append(KIB, b"x"), "over 1024 bytes")


@attack("blobs of a device")
def _(lab: Lab) -> Found:
    with BlobStore(lab.folder, StoreLimits(blobs=3)) as store:
        first, second, third = (store.put(bytes([n])) for n in range(3))
        store.path(first)
        with store.write(fourth := Digest.of(b"4")) as writer:
            writer.append(0, b"4")
            writer.commit()
        assert store.missing([first, second, third, fourth]) == (second,)
        store.put_briefly(b"5", fifth := Digest.of(b"5"))
        assert store.missing([fifth, first]) == (first,)
        with store.pinned([third, fourth, fifth]), pytest.raises(CapacityError, match="in use"):
            store.put(b"6")
        assert len(list((lab.folder / "blobs").iterdir())) == 2
        return FORGOTTEN


@attack("blobs in memory")
def _(lab: Lab) -> Found:
    with BlobStore(lab.folder, StoreLimits(in_memory=2)) as store:
        digests = [Digest.of(bytes([n])) for n in range(3)]
        for n, digest in enumerate(digests):
            store.put_briefly(bytes([n]), digest)
        assert store.missing(digests) == tuple(digests[:1])
    return FORGOTTEN


@attack("a blob in memory")
def _(lab: Lab) -> Found:
    with BlobStore(lab.folder, StoreLimits(in_memory_nbytes=KIB)) as store:
        store.put_briefly(b"x" * (KIB + 1), digest := Digest.of(b"x" * (KIB + 1)))
        assert store.path(digest).parent == lab.folder / "blobs"
    return Found("a file", "nobody")


@attack("uploads cut short")
def _(lab: Lab) -> Found:
    digests = [Digest.of(bytes([n])) for n in range(MOST_CUT + 1)]
    with BlobStore(lab.folder) as store:
        for digest in digests:
            with store.write(digest) as writer:
                writer.append(0, b"x")
        assert [store.committed(digest) for digest in digests] == [0] + [1] * MOST_CUT
    return FORGOTTEN


def times_run(cache: IdempotencyCache, requests: Sequence[str], reply: RunReply) -> int:
    """How often a job is run that is asked for under these names, one after another."""
    runs = []

    async def run() -> RunReply:
        runs.append(1)
        return reply

    async def story() -> None:
        for request in requests:
            assert await cache.answer(OWN, request, JOB, run) == reply
            await asyncio.sleep(0)

    asyncio.run(story())
    return len(runs)


@attack("answers of a device")
def _(lab: Lab) -> Found:
    requests = ("r1", "r2", "r3", "r3", "r2", "r1")
    assert times_run(IdempotencyCache(capacity=2), requests, FAILED) == 4
    return FORGOTTEN


@attack("bytes of a device's answers")
def _(lab: Lab) -> Found:
    crash = RunFailure(artifact=JOB.artifact, status=Status.RUN_CRASH, why="x" * 600)
    requests = ("r1", "r2", "r2", "r1")
    assert times_run(IdempotencyCache(capacity_nbytes=KIB), requests, RunReply(outcome=crash)) == 3
    return FORGOTTEN


@attack("runs that wait for their turn on a device")
def _(lab: Lab) -> Found:
    async def story() -> BusyError:
        cache, end = IdempotencyCache(under_way=2), asyncio.Event()

        async def run() -> RunReply:
            await end.wait()
            return FAILED

        for request in ("r1", "r2"):
            caller = asyncio.create_task(cache.answer(OWN, request, JOB, run))
            await asyncio.sleep(0)
            caller.cancel()  # the run stays
        with pytest.raises(BusyError) as error:
            await cache.answer(OWN, "r3", JOB, run)
        end.set()
        await cache.answer(OWN, "r1", JOB, run)
        await asyncio.sleep(0)
        await cache.answer(OWN, "r3", JOB, run)
        return error.value

    error = asyncio.run(story())

    def ask() -> None:
        raise error

    return refused(ask, "2 runs wait for their turn")


@attack("buffers of a run")
def _(lab: Lab) -> Found:
    many = replace(JOB, buffers=(buffer(Role.SCRATCH, 1),) * 4097)
    return refused_run(lab, "4097 buffers", many)


@attack("entries in a run's profile")
def _(lab: Lab) -> Found:
    return refused_run(lab, "4097 entries in a prof", replace(JOB, profile=("echo",) * 4097))


@attack("samples or repeats of a run")
def _(lab: Lab) -> Found:
    samples, repeats = replace(JOB, samples=100_001), replace(JOB, repeats=100_001)
    return refused_run(lab, "100001 (samples|repeats)", samples, repeats)


@attack("bytes of a run's buffers")
def _(lab: Lab) -> Found:
    large = replace(JOB, buffers=(buffer(Role.SCRATCH, (2 << 30) + 1),))
    return refused_run(lab, "2147483649 bytes in buffers", large)


@attack("bytes of a run's outputs")
def _(lab: Lab) -> Found:
    outputs = tuple(buffer(Role.OUTPUT, (32 << 20) + 1, name) for name in "ab")
    return refused_run(lab, "268435464 bytes of outputs", replace(JOB, buffers=outputs, samples=4))


@attack("a name in a run")
def _(lab: Lab) -> Found:
    entry = replace(JOB, entry="e" * 1001)
    named = replace(JOB, buffers=(buffer(Role.SCRATCH, 1, "b" * 1001),))
    return refused_run(lab, "1001 characters", entry, named)


@attack("blobs that users are known to have sent")
def _(_: Lab) -> Found:
    known = Senders(2)
    first, second, third = (Digest.of(bytes([n])) for n in range(3))
    known.note("ann", [first, second])
    known.note("ann", [first])
    known.note("bob", [third])
    assert [known.knows("ann", each) for each in (first, second)] == [True, False]
    return FORGOTTEN


@attack("an artifact")
def _(lab: Lab) -> Found:
    lab.patch.setattr(executor, "MOST_CODE_NBYTES", len(CODE))
    longer = CODE + b"x"
    with lab.device() as client:
        client.ensure({JOB.artifact: CODE, Digest.of(longer): longer})
        assert not client.load_module(JOB.artifact)
        ended = client.run(replace(JOB, artifact=Digest.of(longer)), request_id="r")
    assert isinstance(ended, RunFailure)
    assert "it has more than" in ended.why
    assert lab.logged("ran")[-1]["why"] == ended.why
    return Found(f"the run ends: `{ended.status.value}`", "who asks, and the device's log (`ran`)")


@attack("a blob that a client reads")
def _(lab: Lab) -> Found:
    data = b"d" * 100
    output = replace(buffer(Role.OUTPUT, 99), fetch=True)
    given = BufferSpec(name="x", role=Role.INPUT, nbytes=100, content=Digest.of(data))
    with lab.device() as client:
        client.ensure({JOB.artifact: CODE, Digest.of(data): data})
        assert client.read(Digest.of(data), 100) == data
        with pytest.raises(AnswerError, match="does not end after 99 bytes"):
            client.run(replace(JOB, buffers=(given, output)), request_id="r")  # it gives 100
        return refused(lambda: client.read(Digest.of(data), 99), "does not end after 99 bytes")


@attack("verdicts on artifacts")
def _(lab: Lab) -> Found:
    lab.patch.setattr(executor, "MOST_VERDICTS", 2)
    looked_at: list[bytes] = []

    def rejection(content: bytes, machine: Machine) -> None:
        looked_at.append(content)

    lab.patch.setattr(elf, "rejection", rejection)
    artifacts = [Elf(payload=b"%d" % n).build() for n in range(3)]
    first, second, third = map(Digest.of, artifacts)
    with lab.device() as client:
        client.ensure(dict(zip((first, second, third), artifacts, strict=True)))
        for artifact in (first, second, second, third, third, first):
            assert not client.load_module(artifact)
    assert looked_at == [*artifacts, artifacts[0]]
    return Found("all are forgotten", "nobody: artifacts are looked at again")


@attack("blobs that no run has used yet")
def _(lab: Lab) -> Found:
    kept = UploadStatistics()
    digests = [Digest.of(struct.pack("I", n)) for n in range(4097)]
    kept.note(digests)
    assert kept.used(digests[:1]) == (1, 0)
    assert kept.used(digests[1:2]) == (0, 1)
    return Found("the oldest are forgotten", "nobody: they count as found there")


@attack("calls that crashed a device")
def _(lab: Lab) -> Found:
    lab.patch.setattr(quarantined, "MOST", 2)
    clock, file = ManualClock(0.0), lab.folder / "q.json"
    runs = QuarantinedRuns(file, lab.farm.log, clock, device="sim0")
    jobs = [replace(JOB, entry=name) for name in ("a", "b", "c")]
    for job in jobs:
        for _ in range(quarantined.CRASHES):
            runs.ended(job, RunFailure(artifact=job.artifact, status=Status.RUN_CRASH, why="x"))
    again = QuarantinedRuns(file, lab.farm.log, clock, device="sim0")
    for known in (runs, again):
        assert [known.refusal(job) is None for job in jobs] == [True, False, False]
    return Found("the oldest are forgotten", "the device's log, which told each")


@attack("a word on a call that crashed a device")
def _(lab: Lab) -> Found:
    file = lab.folder / "q.json"
    runs = QuarantinedRuns(file, lab.farm.log, ManualClock(0.0), device="sim0")
    job = replace(JOB, entry="e" * 1000)
    runs.ended(job, RunFailure(artifact=job.artifact, status=Status.RUN_CRASH, why="w" * 5000))
    assert file.stat().st_size < 1000
    return CUT


@attack("times of the known kernel")
def _(lab: Lab) -> Found:
    def time(seconds: float, spread: float) -> WallTime:
        return WallTime(
            minimum_seconds=seconds,
            p10_seconds=seconds,
            median_seconds=seconds,
            p90_seconds=seconds * (1 + spread),
            calls=1,
            regions=1,
        )

    history = ClockHistory(time(1.0, 0.5))
    for _ in range(16):
        history.keep(time(1.0, 0.2))
    assert history.tolerance == pytest.approx(0.2)
    return Found("the oldest are forgotten", "nobody")


class _Stream:
    def __init__(self, payload: bytes, nbytes: int | None = None) -> None:
        self._left = struct.pack("<I", nbytes or len(payload)) + payload

    def take(self, count: int) -> bytes:
        assert count <= len(self._left), "read on"
        taken, self._left = self._left[:count], self._left[count:]
        return taken


def broken(stream: _Stream, match: str) -> Found:
    with pytest.raises(InfraError, match=match):
        read_reply(stream)
    return Found("the run ends: `run_crash`", "who asks, and the device's log (`ran`)")


@attack("a child's reply")
def _(lab: Lab) -> Found:
    return broken(_Stream(b"", (16 << 20) + 1), "a reply of 16777217 bytes")


@attack("events of a timeline")
def _(lab: Lab) -> Found:
    done = b"\2" + struct.pack("<dB21QIIBII", 1.0, 0, *[0] * 21, 0, 0, 0, 0, MOST_EVENTS + 1)
    return broken(_Stream(done), "262145 events")


@attack("what a child says")
def _(lab: Lab) -> Found:
    said = b"w" * (LONGEST_TEXT + 1)
    reply = read_reply(_Stream(b"\3\2" + struct.pack("<I", len(said)) + said))
    assert isinstance(reply, FailedReply)
    assert len(reply.why) == LONGEST_TEXT
    return CUT


@attack("last words of a child")
def _(lab: Lab) -> Found:
    with LastWords() as words:
        with open(words.descriptor, "wb", closefd=False) as file:
            file.write(b"w" * 1000)
        assert len(words.text()) == 400
    return CUT
