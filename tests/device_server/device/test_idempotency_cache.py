"""A request is run once, however often it is asked."""

from __future__ import annotations

import asyncio

import pytest
from tilefarm.digest import Digest
from tilefarm.errors import MissingBlobError, ProtocolError
from tilefarm.measurement import RunFailure, RunJob, Status
from tilefarm.rpc.device_calls import RunReply

from device_server.device.idempotency_cache import IdempotencyCache
from device_server.tenancy import OWN, Tenancy

JOB = RunJob(artifact=Digest.of(b"a"), entry="f", buffers=())
REPLY = RunReply(outcome=RunFailure(artifact=JOB.artifact, status=Status.RUN_CRASH, why="x"))


class Work:
    """Something to run; it ends when told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.runs = 0
        self.begun = asyncio.Event()
        self.end = asyncio.Event()
        self.error = error

    async def __call__(self) -> RunReply:
        self.runs += 1
        self.begun.set()
        await self.end.wait()
        if self.error:
            raise self.error
        return REPLY


def test_two_that_ask_at_once_share_one_run() -> None:
    async def story() -> None:
        cache, work = IdempotencyCache(), Work()
        both = asyncio.gather(*(cache.answer(OWN, "r", JOB, work) for _ in range(2)))
        await asyncio.sleep(0)
        work.end.set()
        assert await both == [REPLY, REPLY]
        assert work.runs == 1

    asyncio.run(story())


def test_a_run_outlives_the_caller_that_went_away() -> None:
    async def story() -> None:
        cache, work = IdempotencyCache(), Work()
        first = asyncio.create_task(cache.answer(OWN, "r", JOB, work))
        await work.begun.wait()
        first.cancel()
        work.end.set()
        assert await cache.answer(OWN, "r", JOB, work) == REPLY
        assert work.runs == 1

    asyncio.run(story())


def test_a_run_that_raised_may_be_asked_for_again() -> None:
    async def story() -> None:
        cache, work = IdempotencyCache(), Work(MissingBlobError("gone"))
        work.end.set()
        for _ in range(2):
            with pytest.raises(MissingBlobError):
                await cache.answer(OWN, "r", JOB, work)
            await asyncio.sleep(0)
        assert work.runs == 2

    asyncio.run(story())


def test_old_answers_are_forgotten() -> None:
    async def story() -> None:
        cache, work = IdempotencyCache(capacity=2), Work()
        work.end.set()
        for request in ("r1", "r2", "r3", "r2", "r1"):
            await cache.answer(OWN, request, JOB, work)
        assert work.runs == 4

    asyncio.run(story())


def test_a_request_needs_an_id() -> None:
    with pytest.raises(ProtocolError, match="request id"):
        asyncio.run(IdempotencyCache().answer(OWN, "", JOB, Work()))


def test_nobody_is_answered_with_what_another_lease_was() -> None:
    async def story() -> None:
        cache, work = IdempotencyCache(), Work()
        work.end.set()
        for lease in (Tenancy(lease="a", fence=1), Tenancy(lease="b", fence=2)):
            for _ in range(2):
                await cache.answer(lease, "r", JOB, work)
        assert work.runs == 2

    asyncio.run(story())


def test_a_run_of_an_earlier_lease_that_ends_late_changes_nothing() -> None:
    async def story() -> None:
        cache, late, prompt = IdempotencyCache(), Work(MissingBlobError("gone")), Work()
        first = asyncio.create_task(cache.answer(Tenancy(fence=1), "r", JOB, late))
        await asyncio.sleep(0)
        newer = Tenancy(fence=2)
        prompt.end.set()
        await cache.answer(newer, "r", JOB, prompt)
        late.end.set()
        with pytest.raises(MissingBlobError):
            await first
        await asyncio.sleep(0)
        await cache.answer(newer, "r", JOB, prompt)
        assert prompt.runs == 1

    asyncio.run(story())
