"""Where a compile task runs: what a place promises, and a child process of ours as one.

A place is used by one thread. It answers with one result per job, in order, or raises
`PlaceCrashed` or `PlaceTimedOut`; after either the next call finds it fit again. Only `kill` may be
called from another thread.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from tilefarm.artifact import Artifact, BuildFailure, CompileJob, ProgramJob

from driver.compiling.pipes import PipeChild, far_ends

Job: TypeAlias = CompileJob | ProgramJob
Result: TypeAlias = Artifact | BuildFailure


class PlaceCrashed(Exception):
    """The process died under the task."""


class PlaceTimedOut(Exception):
    """The task was killed because it took too long."""


class Place(Protocol):
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


class ProcessPlace:
    """A child process of ours, started when first needed and again after it died.

    Args:
        log: gets what it prints.
        scratch: folder for its temporary files, which it may leave there when it is killed.
    """

    def __init__(self, log: Path, scratch: Path) -> None:
        self._log = log
        self._scratch = scratch
        self._child: PipeChild | None = None

    def prepare(self) -> None:
        """Nothing: the process is started when it is needed."""

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:
        child = self._child
        if child is None:
            child = self._child = PipeChild(
                "driver.compiling.places", [str(self._scratch)], pipes=1, log=self._log
            )
        pipe = child.pipes[0]
        try:
            pipe.send(list(jobs))
            if not pipe.poll(timeout_seconds):
                self.close()
                raise PlaceTimedOut(f"no answer within {timeout_seconds:g} s")
            results: list[Result] = pipe.recv()
        except (EOFError, OSError):
            self._child = None
            raise PlaceCrashed(f"the compile process ended: {_death(child.close())}") from None
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


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"


def _main(argument: str, scratch: str) -> None:
    """The child: batches in, results out, until the other end is gone."""
    (pipe,) = far_ends(argument)
    tempfile.tempdir = scratch
    from compile_worker.compiler import compile_kernel, compile_program

    while True:
        try:
            jobs: list[Job] = pipe.recv()
        except EOFError:
            return
        pipe.send(
            [
                compile_program(job) if isinstance(job, ProgramJob) else compile_kernel(job)
                for job in jobs
            ]
        )


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2])
