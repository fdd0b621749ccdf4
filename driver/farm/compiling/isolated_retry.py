"""Whose fault was it? A job under which its worker died, once more in a process of its own.

Ray does not tell why a worker died, and many die for reasons that are no job's: a memory monitor, a
machine that goes down, somebody's `kill`. A process of ours ends with a signal or a code, so here a
crash is told from a kill, and what is nobody's crash ends as the artifact that it should have been.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from tilefarm.artifact import Artifact, BuildFailure
from tilefarm.closing import Closing
from tilefarm.measurement import Status

from driver.farm.compiling.reproducers import Reproducers
from driver.farm.compiling.retrying_worker import RetryingWorker
from driver.farm.compiling.worker import Worker, WorkerCrashed, WorkerLost, WorkerTimedOut

if TYPE_CHECKING:
    from compile_worker.worker import Job, Result

ISOLATED_NBYTES: Final = 4 << 30
"""What one compile may take; a job that wants more is to blame, not the machine that has less."""

MakeWorker: TypeAlias = Callable[[Path | None], Worker]
"""Makes a worker that leaves the trail of its jobs in that file."""


class IsolatedRetry(Closing):
    """Compiles single jobs, each in a new worker; thread-safe.

    Args:
        worker: makes one.
        timeout_seconds: for each kernel of a job, as `time_limit` counts them.
        kept: where crashes and hangs are kept; None: nowhere.
    """

    def __init__(
        self, worker: MakeWorker, *, timeout_seconds: float, kept: Reproducers | None
    ) -> None:
        self._make = worker
        self._timeout_seconds = timeout_seconds
        self._kept = kept
        self._lock = threading.Lock()
        self._workers: list[Worker] = []
        self._closed = False

    def close(self) -> None:
        """End what is being compiled."""
        with self._lock:
            self._closed = True
            for worker in self._workers:
                worker.kill()

    def compile(self, job: Job) -> Result:
        """What becomes of a job by itself; a bad end is kept, with the IR of its last good step."""
        trail = None if self._kept is None else self._kept.trail(job)
        with self._worker(None if trail is None else trail.path) as worker:
            try:
                result = worker.compile([job], self._timeout_seconds * job.kernel_count)[0]
            except WorkerCrashed as crash:
                result = _failure(job, Status.COMPILE_CRASH, str(crash))
            except WorkerTimedOut as hang:
                result = _failure(job, Status.COMPILE_TIMEOUT, str(hang))
            except WorkerLost as loss:
                result = _failure(job, Status.INFRA_ERROR, str(loss))
        if self._kept is None or trail is None:
            return result
        last = trail.read()
        trail.path.unlink(missing_ok=True)
        if self._closed or isinstance(result, Artifact) or result.status is Status.COMPILE_ERROR:
            return result
        return self._kept.keep_failure(job, result, last)

    @contextmanager
    def _worker(self, trail: Path | None) -> Iterator[Worker]:
        worker = RetryingWorker(self._make(trail))
        with self._lock:
            self._workers.append(worker)
            if self._closed:
                worker.kill()
        try:
            yield worker
        finally:
            with self._lock:
                self._workers.remove(worker)
            worker.close()


def _failure(job: Job, status: Status, why: str) -> BuildFailure:
    return BuildFailure(job=job.digest, status=status, stage="compile", why=why)
