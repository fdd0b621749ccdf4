"""How much compile workers get done, and what one of them holds in memory meanwhile."""

from __future__ import annotations

import os
import queue
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.artifact import Artifact, CompileJob
from tilefarm.errors import InfraError

from driver.farm.compiling.executor import Builds, Workers
from driver.farm.compiling.worker import ProcessWorker, Worker

_BATCH: Final = 16
_TIMEOUT_SECONDS: Final = 60.0
_READINGS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMemory:
    """What one worker process holds as it compiles: (compiles so far, resident bytes)."""

    readings: tuple[tuple[int, int], ...]

    @property
    def growth_nbytes(self) -> float:
        """Bytes that a compile leaves behind, over the second half."""
        half = self.readings[len(self.readings) // 2 :]
        (first, low), (last, high) = half[0], half[-1]
        return (high - low) / max(1, last - first)


def rate(jobs: Sequence[CompileJob], workers: int, *, on_ray: bool) -> float:
    """Candidates a second that so many workers compile, as in a search: in batches, by processes.

    Raises:
        InfraError: one was not compiled.
    """
    with ExitStack() as owned:
        scratch = Path(owned.enter_context(tempfile.TemporaryDirectory(prefix="tf-")))
        executor = Workers(
            _workers(owned, scratch, workers, on_ray),
            lambda trail: ProcessWorker(scratch / "log", scratch, trail=trail),
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        owned.callback(executor.close)
        _compile(executor, list(jobs[:_BATCH]) * workers)  # starts the processes
        began = time.perf_counter()
        _compile(executor, jobs)
        return len(jobs) / (time.perf_counter() - began)


def _workers(owned: ExitStack, scratch: Path, workers: int, on_ray: bool) -> list[Worker]:
    if not on_ray:
        return [ProcessWorker(scratch / "log", scratch) for _ in range(workers)]
    from driver.farm.compiling.ray_worker import RayHost, RayWorker

    host = RayHost(scratch, workers, scratch / "log")
    owned.callback(host.close)
    return [RayWorker(host, slot) for slot in range(workers)]


def _compile(executor: Workers, jobs: Sequence[CompileJob]) -> None:
    """Compile all, and wait for the last."""
    told: queue.SimpleQueue[Builds | BaseException] = queue.SimpleQueue()
    for at in range(0, len(jobs), _BATCH):
        executor.submit(list(enumerate(jobs[at : at + _BATCH], at)), told.put)
    done = 0
    while done < len(jobs):
        heard = told.get()
        if isinstance(heard, BaseException):
            raise heard
        for build in heard.builds:
            if not isinstance(build.result, Artifact):
                raise InfraError(f"a candidate does not compile: {build.result.why}", "report it")
        done += len(heard.builds)


def worker_memory(jobs: Sequence[CompileJob], compiles: int) -> WorkerMemory:
    """The resident memory of one process that compiles so many, and is not relieved in between."""
    readings = []
    with tempfile.TemporaryDirectory(prefix="tf-") as folder:
        worker = ProcessWorker(Path(folder) / "log", Path(folder), compiles=compiles + _BATCH)
        try:
            done, due = 0, 0
            while done < compiles:
                batch = [
                    jobs[(done + at) % len(jobs)] for at in range(min(_BATCH, compiles - done))
                ]
                worker.compile(batch, _TIMEOUT_SECONDS * len(batch))
                done += len(batch)
                if done >= due:
                    readings.append((done, _resident_nbytes(worker.pid)))
                    due = done + compiles // _READINGS
            readings.append((done, _resident_nbytes(worker.pid)))
        finally:
            worker.close()
    return WorkerMemory(readings=tuple(readings))


def _resident_nbytes(pid: int | None) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
