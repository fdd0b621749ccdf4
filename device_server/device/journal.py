"""Answers by request id, so that a request that is sent again is answered and not run again."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from tilefarm.errors import ProtocolError
from tilefarm.measurement import RunJob
from tilefarm.rpc.device_calls import RunReply


class RunJournal:
    """The last `capacity` answers. Lives in one event loop."""

    def __init__(self, capacity: int = 256) -> None:
        self._capacity = capacity
        self._runs: OrderedDict[str, tuple[RunJob, asyncio.Task[RunReply]]] = OrderedDict()

    async def answer(
        self, request_id: str, job: RunJob, run: Callable[[], Awaitable[RunReply]]
    ) -> RunReply:
        """What `run` answers, which is asked at most once per request id.

        The run goes on when the caller goes away; whoever asks again gets its answer. A run that
        raises is forgotten: it may be asked for again.

        Raises:
            ProtocolError: no request id, or the id was used for another job.
        """
        if not request_id:
            raise ProtocolError("a run without a request id")
        known = self._runs.get(request_id)
        if known and known[0] != job:
            raise ProtocolError(f"request {request_id} was another job before")
        task = known[1] if known else self._begin(request_id, job, run)
        return await asyncio.shield(task)

    def _begin(
        self, request_id: str, job: RunJob, run: Callable[[], Awaitable[RunReply]]
    ) -> asyncio.Task[RunReply]:
        async def answered() -> RunReply:
            return await run()

        task = asyncio.create_task(answered())
        self._runs[request_id] = (job, task)
        task.add_done_callback(lambda done: self._settle(request_id, done))
        while len(self._runs) > self._capacity:
            self._runs.popitem(last=False)
        return task

    def _settle(self, request_id: str, task: asyncio.Task[RunReply]) -> None:
        # Asking for the exception also tells asyncio that somebody has seen it.
        if task.cancelled() or task.exception():
            self._runs.pop(request_id, None)
