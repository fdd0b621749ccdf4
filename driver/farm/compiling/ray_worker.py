"""Compiling on Ray: a cluster of our own, or one that is joined, behind a process of its own.

Ray forks to start, dies with the thread that started it, and ends its whole process when it cannot
go on; none of that may happen to a driver with numerical threads and live channels. So a child, the
host, runs Ray (`ray_child.py`), and each slot of the driver hands its batches through a pipe.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tilefarm.clock import Clock, SystemClock
from tilefarm.errors import ClusterLostError, InfraError, TilefarmError
from tilefarm.threads import start_thread
from tilefarm.watch.log import PLAIN, LogStyle

from driver.farm.compiling.compile_log import style_words
from driver.farm.compiling.pipes import PipeChild, accept
from driver.farm.compiling.ray_child import BEGAN, CRASHED, LOST, OVER, TIMED_OUT, not_up
from driver.farm.compiling.ray_queue import RayQueue
from driver.farm.compiling.worker import (
    ProcessWorker,
    Worker,
    WorkerCrashed,
    WorkerLost,
    WorkerTimedOut,
)

if TYPE_CHECKING:
    from compile_worker.worker import Job, Result

HOST: Final = "driver.farm.compiling.ray_child"
"""The program of the child."""

_PATIENCE_SECONDS: Final = 8.0
WORKER_SECONDS: Final = 120.0
"""A Ray of our own that gives a batch no worker by then is not well."""
CLUSTER_SECONDS: Final = 3600.0
"""So long a run stands in the queue of a cluster that others fill, as a job does for devices."""

_RAISED: Final[Mapping[str, type[Exception]]] = {
    CRASHED: WorkerCrashed,
    TIMED_OUT: WorkerTimedOut,
    LOST: WorkerLost,
}


class RayHost:
    """A child process with a Ray of its own in it, or a driver on a cluster; in the background.

    Ray listens on every interface and reads its own settings from the environment; what can be
    closed is: a random token in a file of mode 0600, no dashboard, no usage reports, nothing in the
    home folder.

    Args:
        folder: for the token and Ray's sockets; a short path, for sockets have short names.
        workers: tasks at once; 0: as many as the cluster has CPUs.
        log: gets what Ray prints.
        cluster: the address of a cluster to join; empty: start one here.
        token: the file of that cluster's token; None: as the environment says.
        with_plugins: jobs bring passes of the user's.
        style: of what is logged of its results.
        clock: for waits in Ray's queue.
    """

    def __init__(
        self,
        folder: Path,
        workers: int,
        log: Path,
        *,
        cluster: str = "",
        token: Path | None = None,
        with_plugins: bool = False,
        style: LogStyle = PLAIN,
        clock: Clock | None = None,
    ) -> None:
        self.folder = folder
        self.style = style
        self.cluster = cluster
        self.queue = RayQueue(
            CLUSTER_SECONDS if cluster else WORKER_SECONDS, clock=clock or SystemClock()
        )
        words = [str(folder), *style_words(style), cluster, str(token.absolute()) if token else ""]
        words += [str(workers), "plugins" if with_plugins else ""]
        self._child = PipeChild(HOST, words, pipes=1, log=log, kept=True)
        (self._control,) = self._child.pipes
        self.pipes: list[Connection] = []
        """One for each slot, once Ray is up."""
        self._settled = threading.Event()
        self._failure: TilefarmError | None = None
        self._thread = start_thread(
            self._listen, name="ray", broken=lambda error: self.gone(repr(error))
        )

    def wait(self, seconds: float | None = None) -> bool:
        """Whether Ray is up, after waiting at most so long.

        Raises:
            InfraError: it will never be, or is gone.
        """
        settled = self._settled.wait(seconds)
        if self._failure is not None:
            raise self._failure
        return settled

    @property
    def waits_for(self) -> str:
        """What it keeps the run waiting for, in words; empty if nothing."""
        if self.cluster and not self._settled.is_set():
            return f"joining the Ray cluster at {self.cluster}"
        queued = self.queue.waits_for
        return queued and f"waiting for {'the cluster' if self.cluster else 'Ray'}: {queued}"

    def gone(self, why: str = "its process ended") -> None:
        """Note that it has ended, or is good for nothing any more, and let nothing of it linger."""
        self._end(self._lost("is gone", "it is back") if self.cluster else not_up(why))

    def stuck(self) -> str:
        """The same of one that has let the run stand still for too long; why."""
        why = f"none of our batches began within {self.queue.patience_seconds / 60:g} min"
        full = f"is full: {why}"
        self._end(self._lost(full, "it is less busy") if self.cluster else not_up(why))
        return why

    def _lost(self, what: str, until: str) -> ClusterLostError:
        return ClusterLostError(
            f"the Ray cluster at {self.cluster} {what}",
            f"nothing measured is lost: once {until}, the same command continues",
        )

    def _end(self, failure: InfraError) -> None:
        self._failure = self._failure or failure
        self._settled.set()
        self._child.kill()

    def kill(self) -> None:
        """End it and everything below it; from any thread."""
        self._child.kill()

    def close(self) -> None:
        """End it and everything below it at once: there is nothing in Ray that is worth a wait."""
        self._child.kill()
        self._thread.join()
        self._child.close()
        for pipe in self.pipes:
            pipe.close()

    def _listen(self) -> None:
        """Takes the one message of the start, then notices the end."""
        try:
            told = self._control.recv()
            if isinstance(told, int):
                self.pipes = accept(self._control, told)
            else:
                self._failure = told
            self._settled.set()
            self._control.recv()
        except (EOFError, OSError):
            self.gone()


class RayWorker:
    """One slot of the host."""

    def __init__(self, host: RayHost, slot: int) -> None:
        self._host = host
        self._slot = slot

    def prepare(self) -> None:
        """Wait for Ray; a host that ends instead loses the first task."""
        with contextlib.suppress(TilefarmError):
            self._host.wait()

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:
        if self._host.cluster:
            self._host.wait()
        else:
            self.prepare()
        try:
            kind, content = self._answer(list(jobs), timeout_seconds)
        except (EOFError, OSError):
            kind, content = OVER, "its process ended"
        if kind == OVER:
            self._host.gone(content)
            if self._host.cluster:
                self._host.wait(0)  # raises why
            raise WorkerLost(f"Ray is gone: {content}")
        if kind in _RAISED:
            raise _RAISED[kind](content)
        results: list[Result] = content
        return results

    def _answer(self, jobs: list[Job], timeout_seconds: float) -> tuple[str, Any]:
        """The host's last word about a batch, after one that it began."""
        queue, pipes = self._host.queue, self._host.pipes
        if not pipes:
            raise EOFError  # Ray has never been up
        pipe = pipes[self._slot]
        with queue.batch() as standing:
            pipe.send((jobs, timeout_seconds))
            while not pipe.poll(max(0.0, queue.patience_left_seconds)):
                if queue.patience_left_seconds <= 0:
                    return OVER, self._host.stuck()
            kind, content = pipe.recv()
            if kind == BEGAN:
                queue.begin(standing)
                kind, content = pipe.recv()
            return kind, content

    def kill(self) -> None:
        self._host.kill()

    def close(self) -> None:
        """Nothing: the host is closed by who started it."""


class RayWhenUp:
    """A Ray slot; a process of ours while Ray is not up.

    Slot 0 does not wait for it at all, so that something is compiled at once; the others take no
    task for a while, for a process that is used for seconds only costs more than it gives.
    """

    def __init__(self, host: RayHost, slot: int, log: Path) -> None:
        self._host = host
        self._first = slot == 0
        self._process = ProcessWorker(log, host.folder, style=host.style)
        self._ray = RayWorker(host, slot)

    def prepare(self) -> None:
        """Wait a while for Ray, but not in slot 0."""
        with contextlib.suppress(InfraError):
            self._host.wait(0 if self._first else _PATIENCE_SECONDS)

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:
        return self._worker().compile(jobs, timeout_seconds)

    def kill(self) -> None:
        self._process.kill()
        self._ray.kill()

    def close(self) -> None:
        self._process.close()

    def _worker(self) -> Worker:
        try:
            up = self._host.wait(0)
        except InfraError:
            return self._process
        if not up:
            return self._process
        self._process.close()
        return self._ray
