"""Where a compile task runs: what a worker promises, and a child process of ours as one.

A worker is used by one thread. It answers with one result per job, in order, or raises
`WorkerCrashed`, `WorkerTimedOut` or `WorkerLost`; after each the next call finds it fit again. Only
`kill` may be called from another thread.
"""

from __future__ import annotations

import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tilefarm.errors import InfraError
from tilefarm.watch.log import PLAIN, LogStyle

from driver.farm.compiling.compile_log import compile_log, style_words, tell
from driver.farm.compiling.pipes import PipeChild, far_ends
from driver.farm.compiling.time_limit import overdue

if TYPE_CHECKING:
    from compile_worker.pipeline import Watcher
    from compile_worker.worker import Job, Result

CHILD: Final = "driver.farm.compiling.worker"
"""The program of a process that compiles: this module."""

COMPILES: Final = 2000
"""A process ends after so many jobs, so that nothing that LLVM leaks can add up."""


_OWN_DEATHS: Final = frozenset(
    {
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGABRT,
        signal.SIGILL,
        signal.SIGFPE,
        signal.SIGTRAP,
        signal.SIGSYS,
    }
)
"""Signals that a process gets for what it does itself; every other one is sent by somebody."""

_START_SECONDS: Final = 60.0
"""A process that has not begun by then is on a machine that stands still."""
_STARTS: Final = 3
"""In a row; a process that ends so often before it begins will never begin."""


class WorkerCrashed(Exception):
    """The process died under the task, and it may have been the task's doing."""


class WorkerTimedOut(Exception):
    """The task was killed because it took too long."""


class WorkerLost(Exception):
    """The task was lost for no doing of its own: killed from outside, or its machine is gone."""


class Worker(Protocol):
    """Compiles a few jobs in one go."""

    def prepare(self) -> None:
        """Called once, before the first task; may wait while others do the work."""
        ...

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:
        """One result per job, in order."""
        ...

    def kill(self) -> None:
        """From any thread: end what runs now, so that `compile` raises."""
        ...

    def close(self) -> None:
        """End the process behind it, if there is one."""
        ...


class ProcessWorker:
    """A child process of ours, started when first needed, and again when it died or grew old.

    Args:
        log: gets what it prints.
        scratch: folder for its temporary files, which it may leave there when it is killed.
        memory_nbytes: what it may take at most; 0: whatever it gets.
        module: the child's program; its `main` calls `serve`.
        compiles: jobs after which it is old.
        trail: the file in which it says how far a job has come; None: it does not.
        style: of what it logs.
    """

    def __init__(
        self,
        log: Path,
        scratch: Path,
        *,
        memory_nbytes: int = 0,
        module: str = CHILD,
        compiles: int = COMPILES,
        trail: Path | None = None,
        style: LogStyle = PLAIN,
    ) -> None:
        self._log = log
        self._words = [str(scratch), str(memory_nbytes), *style_words(style)]
        self._module = module
        self._compiles = compiles
        self._trail = trail
        self._compiled = 0
        self._vain_starts = 0
        self._child: PipeChild | None = None

    def prepare(self) -> None:
        """Nothing: the process is started when it is needed."""

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:
        child = self._young()
        pipe = child.pipes[0]
        self._compiled += len(jobs)
        try:
            pipe.send((list(jobs), self._trail))
            if (late := overdue(pipe, child.pid, timeout_seconds)) is not None:
                self.close()
                raise (WorkerTimedOut if late.is_its_own else WorkerLost)(late.why)
            results: list[Result] = pipe.recv()
        except (EOFError, OSError):
            self._child = None
            raise _death("the compile process ended", child.close()) from None
        return results

    def kill(self) -> None:
        child = self._child
        if child is not None:
            child.kill()

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.close()

    @property
    def pid(self) -> int | None:
        """The child's, while there is one."""
        return None if self._child is None else self._child.pid

    def _young(self) -> PipeChild:
        """The child, or its successor, which has begun: what ends it now is the task's affair.

        Raises:
            WorkerLost: the successor ended before it began.
            InfraError: so did those before it.
        """
        if self._compiled >= self._compiles:
            self.close()
        if self._child is None:
            self._compiled = 0
            self._child = PipeChild(self._module, self._words, pipes=1, log=self._log)
            self._await_beginning(self._child)
        return self._child

    def _await_beginning(self, child: PipeChild) -> None:
        try:
            if not child.pipes[0].poll(_START_SECONDS):
                self.close()
                raise WorkerLost(f"the compile process did not begin in {_START_SECONDS:g} s")
            child.pipes[0].recv()
        except (EOFError, OSError):
            self._child = None
            death = _death("the compile process ended before it began", child.close())
        else:
            self._vain_starts = 0
            return
        if isinstance(death, WorkerCrashed):
            self._vain_starts += 1
        if self._vain_starts >= _STARTS:
            raise InfraError(str(death), f"{self._log} says why") from None
        raise WorkerLost(str(death)) from None


def _death(what: str, code: int) -> WorkerCrashed | WorkerLost:
    """What it means that a process of ours ended so."""
    if code >= 0:
        return WorkerCrashed(f"{what}: exit code {code}")
    killer = signal.Signals(-code)
    if killer in _OWN_DEATHS:
        return WorkerCrashed(f"{what}: {killer.name}")
    return WorkerLost(f"{what}: {killer.name}, which somebody sent")


def serve(
    argument: str,
    scratch: str,
    memory_nbytes: str,
    form: str,
    level: str,
    *,
    watch: Watcher | None = None,
) -> None:
    """The child: a word that it has begun, then batches in, results out, until nobody is there.

    `watch` sees every function after every step of its compile.
    """
    from compile_worker.pipeline import look_away
    from compile_worker.worker import compile_all, prepare_process

    (pipe,) = far_ends(argument)
    log = compile_log(form, level)
    tempfile.tempdir = scratch
    if int(memory_nbytes):
        resource.setrlimit(resource.RLIMIT_AS, (int(memory_nbytes), int(memory_nbytes)))
    prepare_process()
    pipe.send(None)
    while True:
        try:
            jobs, trail = pipe.recv()
        except EOFError:
            return
        results = compile_all(jobs, trail, watch=watch or look_away)
        tell(log, results)
        pipe.send(results)


if __name__ == "__main__":
    serve(*sys.argv[1:])
