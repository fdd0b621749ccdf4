"""Compile workers: a queue of batches, one thread for each worker, and what a death means.

A batch whose worker was killed from outside is given again (`retrying_worker.py`). One that killed
its worker, or took too long, is halved until the culprit is alone; what becomes of that in a
process of its own is its fate (`isolated_retry.py`). The others lose nothing but time.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from tilefarm.artifact import BuildFailure
from tilefarm.clock import Clock, SystemClock
from tilefarm.measurement import Status
from tilefarm.threads import start_thread

from driver.farm.compiling.isolated_retry import IsolatedRetry, MakeWorker
from driver.farm.compiling.reproducers import Reproducers
from driver.farm.compiling.retrying_worker import RetryingWorker
from driver.farm.compiling.worker import Worker, WorkerCrashed, WorkerLost, WorkerTimedOut

if TYPE_CHECKING:
    from compile_worker.worker import Job, Result

_CLOSE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One finished job of a batch.

    `lane` names the worker. `began_seconds` and `ended_seconds` are wall time on this machine.
    """

    number: int
    result: Result
    lane: str
    began_seconds: float
    ended_seconds: float


@dataclass(frozen=True, slots=True)
class Builds:
    """Finished jobs that have come together."""

    builds: tuple[Build, ...]


Deliver = Callable[[Builds | BaseException], None]
"""Takes finished jobs, from any thread; an exception means that compiling is over."""


class Executor(Protocol):
    """Compiles batches somewhere, several at once."""

    def submit(self, batch: Sequence[tuple[int, Job]], deliver: Deliver) -> None:
        """Queue numbered jobs as one task; `deliver` gets each once, in any order."""
        ...

    def close(self) -> None:
        """Forget what is queued and end the workers."""
        ...


class Workers:
    """An executor over workers: each worker has a thread that feeds it.

    Args:
        workers: one batch at a time each.
        alone: makes a worker for a job that failed badly, to be compiled by itself.
        timeout_seconds: for each kernel of a job, as `time_limit` counts them.
        kept: where crashes and hangs are kept; None: nowhere.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        alone: MakeWorker,
        *,
        timeout_seconds: float,
        kept: Reproducers | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._workers = [RetryingWorker(worker) for worker in workers]
        self._timeout_seconds = timeout_seconds
        self._alone = IsolatedRetry(alone, timeout_seconds=timeout_seconds, kept=kept)
        self._clock = clock or SystemClock()
        self._queue: queue.SimpleQueue[tuple[Sequence[tuple[int, Job]], Deliver] | None] = (
            queue.SimpleQueue()
        )
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._waiting: list[Deliver] = []
        self._error: Exception | None = None
        self._threads = [
            start_thread(
                partial(self._feed, worker, f"compile {n}"),
                name=f"compile-{n}",
                broken=self._break,
            )
            for n, worker in enumerate(self._workers, 1)
        ]

    def submit(self, batch: Sequence[tuple[int, Job]], deliver: Deliver) -> None:
        with self._lock:
            self._waiting.append(deliver)
            error = self._error
        if error is not None:
            deliver(error)
        else:
            self._queue.put((tuple(batch), deliver))

    def close(self) -> None:
        self._closed.set()
        for _ in self._threads:
            self._queue.put(None)
        for worker in self._workers:
            worker.kill()
        self._alone.close()
        for thread in self._threads:
            thread.join(_CLOSE_SECONDS)

    def _feed(self, worker: Worker, lane: str) -> None:
        try:
            worker.prepare()
            self._serve(worker, lane)
        finally:
            worker.close()

    def _serve(self, worker: Worker, lane: str) -> None:
        while (task := self._queue.get()) is not None and not self._closed.is_set():
            batch, deliver = task
            try:
                self._run(worker, lane, batch, deliver)
            except Exception as broken:
                if not self._closed.is_set():
                    deliver(broken)
            with self._lock:
                self._waiting.remove(deliver)

    def _break(self, error: Exception) -> None:
        """A thread has died: whoever waits hears of it, for it may have been the only one."""
        with self._lock:
            self._error = self._error or error
            waiting = list(self._waiting)
        for deliver in waiting:
            deliver(error)

    def _run(
        self, worker: Worker, lane: str, batch: Sequence[tuple[int, Job]], deliver: Deliver
    ) -> None:
        began = self._clock.wall_seconds()
        jobs = [job for _, job in batch]
        try:
            kernels = sum(job.kernel_count for job in jobs)
            results = worker.compile(jobs, self._timeout_seconds * kernels)
        except (WorkerCrashed, WorkerTimedOut):
            if len(batch) > 1:
                self._halve(worker, lane, batch, deliver)
            else:
                self._scatter(lane, batch, deliver)
            return
        except WorkerLost:
            self._scatter(lane, batch, deliver)
            return
        results = [
            self._alone.compile(job) if _is_doubtful(result) else result
            for job, result in zip(jobs, results, strict=True)
        ]
        ended = self._clock.wall_seconds()
        deliver(Builds(_spread(lane, batch, results, began, ended)))

    def _halve(
        self, worker: Worker, lane: str, batch: Sequence[tuple[int, Job]], deliver: Deliver
    ) -> None:
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            if not self._closed.is_set():
                self._run(worker, lane, half, deliver)

    def _scatter(self, lane: str, batch: Sequence[tuple[int, Job]], deliver: Deliver) -> None:
        """Each job of a batch by itself."""
        for number, job in batch:
            if self._closed.is_set():
                return
            began = self._clock.wall_seconds()
            result = self._alone.compile(job)
            ended = self._clock.wall_seconds()
            deliver(Builds(_spread(lane, [(number, job)], [result], began, ended)))


def _spread(
    lane: str,
    batch: Sequence[tuple[int, Job]],
    results: Sequence[Result],
    began: float,
    ended: float,
) -> tuple[Build, ...]:
    """When each job of a batch was built: one after the other, each as long as it says."""
    builds, at = [], ended
    for (number, _), result in reversed(list(zip(batch, results, strict=True))):
        start = max(began, at - result.build_seconds)
        builds.append(
            Build(number=number, result=result, lane=lane, began_seconds=start, ended_seconds=at)
        )
        at = start
    return tuple(reversed(builds))


def _is_doubtful(result: Result) -> bool:
    """Whether a job failed by what its compiler or its machine did not foresee."""
    return isinstance(result, BuildFailure) and result.status is not Status.COMPILE_ERROR
