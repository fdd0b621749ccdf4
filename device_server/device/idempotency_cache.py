"""Answers by request id, so that a request that is sent again is answered and not run again."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from tilefarm.digest import Digest
from tilefarm.errors import BusyError, ProtocolError
from tilefarm.measurement import RunJob
from tilefarm.plural import plural
from tilefarm.rpc import methods, wire
from tilefarm.rpc.device_calls import RunReply

from device_server.tenancy import OWN, Tenancy

MOST_ANSWERS: Final = 256
"""That are kept; a client asks for one again within its call's time, before it asks for more."""

MOST_ANSWERS_NBYTES: Final = 64 << 20
"""Of all answers together: sixteen of the longest that there may be."""

MOST_UNDER_WAY: Final = 128
"""Runs that wait for their turn, one of which runs: twice as many as one call may ask for."""


@dataclass(slots=True)
class _Asked:
    """One request: the digest of its job, and its answer as it travels as soon as it is there."""

    job: Digest
    running: asyncio.Task[RunReply] | None = None
    answer: bytes = b""


class IdempotencyCache:
    """The last answers to the newest lease, within bounds; the oldest ones are forgotten first.

    A newer lease begins with none: nobody gets another's answer, whatever request id they guess.
    Lives in one event loop.
    """

    def __init__(
        self,
        capacity: int = MOST_ANSWERS,
        *,
        capacity_nbytes: int = MOST_ANSWERS_NBYTES,
        under_way: int = MOST_UNDER_WAY,
    ) -> None:
        self._capacity = capacity
        self._capacity_nbytes = capacity_nbytes
        self._most_under_way = under_way
        self._tenancy = OWN
        self._under_way: dict[tuple[Tenancy, str], _Asked] = {}
        self._answered: OrderedDict[str, _Asked] = OrderedDict()
        self._nbytes = 0

    async def answer(
        self,
        tenancy: Tenancy,
        request_id: str,
        job: RunJob,
        run: Callable[[], Awaitable[RunReply]],
    ) -> RunReply:
        """What `run` answers, which is asked at most once per lease and request id.

        The run goes on when the caller goes away; whoever asks again gets its answer. A run that
        raises is forgotten: it may be asked for again.

        Raises:
            ProtocolError: no request id, or the id was used for another job.
            BusyError: too many runs wait for their turn.
        """
        if not request_id:
            raise ProtocolError("a run without a request id")
        if tenancy is not self._tenancy:
            self._tenancy, self._nbytes = tenancy, 0
            self._answered.clear()
        digest = _digest_of(job)
        known = self._under_way.get((tenancy, request_id)) or self._answered.get(request_id)
        if known is None:
            known = self._begin(tenancy, request_id, digest, run)
        elif known.job != digest:
            raise ProtocolError(f"request {request_id} was another job before")
        if known.running is None:
            return methods.RUN.reply.decode(known.answer)
        return await asyncio.shield(known.running)

    def nbytes(self, request_id: str) -> int:
        """Of the answer to a request of the newest lease; 0 if none is kept."""
        known = self._answered.get(request_id)
        return len(known.answer) if known else 0

    def _begin(
        self,
        tenancy: Tenancy,
        request_id: str,
        job: Digest,
        run: Callable[[], Awaitable[RunReply]],
    ) -> _Asked:
        if len(self._under_way) >= self._most_under_way:
            raise BusyError(
                f"{plural(len(self._under_way), 'run')} wait for their turn on this device already",
                "wait until some have ended",
            )

        async def answered() -> RunReply:
            return await run()

        task = asyncio.create_task(answered())
        asked = self._under_way[tenancy, request_id] = _Asked(job, task)
        task.add_done_callback(lambda done: self._settle(tenancy, request_id, asked, done))
        return asked

    def _settle(
        self, tenancy: Tenancy, request_id: str, asked: _Asked, task: asyncio.Task[RunReply]
    ) -> None:
        del self._under_way[tenancy, request_id]
        # Asking for the exception also tells asyncio that somebody has seen it.
        if task.cancelled() or task.exception() or tenancy is not self._tenancy:
            return
        asked.running, asked.answer = None, methods.RUN.reply.encode(task.result())
        self._answered[request_id] = asked
        self._nbytes += len(asked.answer)
        while len(self._answered) > self._capacity or self._nbytes > self._capacity_nbytes:
            _, forgotten = self._answered.popitem(last=False)
            self._nbytes -= len(forgotten.answer)


def _digest_of(job: RunJob) -> Digest:
    return Digest.of(wire.RUN_JOB.encode(job))
