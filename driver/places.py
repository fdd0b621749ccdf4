"""Where a compile task runs: what a place promises, and a child process of ours as one.

A place is used by one thread. It answers with one result per job, in order, or raises
`PlaceCrashed` or `PlaceTimedOut`; after either the next call finds it fit again. Only `kill` may be
called from another thread.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from tilefarm.artifact import Artifact, BuildFailure, CompileJob, ProgramJob

Job: TypeAlias = CompileJob | ProgramJob
Result: TypeAlias = Artifact | BuildFailure


class PlaceCrashed(Exception):
    """The process died under the task."""


class PlaceTimedOut(Exception):
    """The task was killed because it took too long."""


class Place(Protocol):
    """Compiles a few jobs in one go."""

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:
        """One result per job, in order."""
        ...

    def kill(self) -> None:
        """From any thread: end what runs now, so that `compile` raises."""
        ...

    def close(self) -> None:
        """End the process behind it, if there is one."""
        ...


class ProcessPlace:
    """A child process of ours, started when first needed and again after it died."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:
        pipe = self._pipe or self._start()
        try:
            pipe.send(list(jobs))
            if not pipe.poll(timeout_seconds):
                self.close()
                raise PlaceTimedOut(f"no answer within {timeout_seconds:g} s")
            results: list[Result] = pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            code = self._end()
            raise PlaceCrashed(f"the compile process ended: {_death(code)}") from None
        return results

    def kill(self) -> None:
        process = self._process
        if process is not None:
            with contextlib.suppress(ValueError):  # its own thread closed it just now
                process.kill()

    def close(self) -> None:
        self.kill()
        self._end()

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, str(self._log)), daemon=True)
        with muted():
            self._process.start()
        theirs.close()
        self._pipe = ours
        return ours

    def _end(self) -> int | None:
        process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if pipe is not None:
            pipe.close()
        if process is None:
            return None
        process.join()
        code = process.exitcode
        process.close()
        return code


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """No Ctrl-C for this thread, nor for the processes that it starts meanwhile."""
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _serve(pipe: Connection, log: str) -> None:
    """The child: batches in, results out, until the other end is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Path(log).open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    from compile_worker.compiler import compile_kernel, compile_program

    while True:
        try:
            jobs: list[Any] = pipe.recv()
        except EOFError:
            return
        pipe.send(
            [
                compile_program(job) if isinstance(job, ProgramJob) else compile_kernel(job)
                for job in jobs
            ]
        )


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
