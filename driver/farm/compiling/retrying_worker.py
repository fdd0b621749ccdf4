"""A task that was lost is given again: what kills workers from outside tells nothing of a task."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from driver.farm.compiling.worker import Worker, WorkerLost

if TYPE_CHECKING:
    from compile_worker.worker import Job, Result

_PAUSES_SECONDS: Final = (0.0, 0.2, 1.0)
"""Before each try: who kills a worker often kills its neighbours at the same time."""


class RetryingWorker:
    """A worker that gets a task three times before the task counts as lost; none once killed."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._killed = threading.Event()

    def prepare(self) -> None:
        self._worker.prepare()

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:
        last = WorkerLost("ended by its driver")
        for pause_seconds in _PAUSES_SECONDS:
            if self._killed.wait(pause_seconds):
                break
            try:
                return self._worker.compile(jobs, timeout_seconds)
            except WorkerLost as lost:
                last = lost
        raise last

    def kill(self) -> None:
        self._killed.set()
        self._worker.kill()

    def close(self) -> None:
        self._worker.close()
