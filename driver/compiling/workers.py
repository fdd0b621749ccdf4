"""Compiling on Ray: a local cluster behind a process of its own. The driver's one door to ray.

Ray forks to start, dies with the thread that started it, and ends its whole process when it cannot
go on; none of that may happen to a driver with numerical threads and live channels. So a child, the
host, runs Ray, and each slot of the driver hands its batches through a pipe. Tasks are stateless
and never retried by Ray: the executor owns what a death means.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from tilefarm.errors import InfraError

from driver.compiling.pipes import PipeChild, far_ends
from driver.compiling.places import Job, Place, PlaceCrashed, PlaceTimedOut, ProcessPlace, Result
from driver.farm.token import create_token

_OBJECT_STORE_NBYTES: Final = 100 * 1024 * 1024
_PATIENCE_SECONDS: Final = 8.0
_START_SECONDS: Final = 120
"""On a busy machine Ray's own 30 s are not enough."""
_CRASHED, _TIMED_OUT, _DONE = "crashed", "timed out", "done"


class RayHost:
    """A child process with a local Ray in it, started in the background.

    Ray listens on every interface and reads its own settings from the environment; what can be
    closed is: a random token in a file of mode 0600, no dashboard, no usage reports, nothing in the
    home folder.

    Args:
        folder: for the token and Ray's sockets; a short path, for sockets have short names.
        workers: tasks at once.
        log: gets what Ray prints.
    """

    def __init__(self, folder: Path, workers: int, log: Path) -> None:
        self.folder = folder
        module = "driver.compiling.workers"
        self._child = PipeChild(module, [str(folder)], pipes=1 + workers, log=log)
        self._control, *self.pipes = self._child.pipes
        self._settled = threading.Event()
        self._why_not = ""
        self._thread = threading.Thread(target=self._listen, name="ray", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether Ray is up, after waiting at most so long.

        Raises:
            InfraError: it will never be, or is gone.
        """
        settled = self._settled.wait(seconds)
        if self._why_not:
            raise InfraError(f"Ray is not up: {self._why_not}", "`--no-ray` works without it")
        return settled

    def gone(self) -> None:
        """Note that a pipe found it ended."""
        self._why_not = self._why_not or "its process ended"
        self._settled.set()

    def kill(self) -> None:
        """End it and everything below it; from any thread."""
        self._child.kill()

    def close(self) -> None:
        """End it and everything below it at once: there is nothing in Ray that is worth a wait."""
        self._child.kill()
        self._thread.join()
        self._child.close()

    def _listen(self) -> None:
        """Takes the one message of the start, then notices the end."""
        try:
            self._why_not = str(self._control.recv())
            self._settled.set()
            self._control.recv()
        except (EOFError, OSError):
            self.gone()


class RayPlace:
    """One slot of the host."""

    def __init__(self, host: RayHost, slot: int) -> None:
        self._host = host
        self._pipe = host.pipes[slot]

    def prepare(self) -> None:
        """Wait for Ray; a host that ends instead is a crash of the first task."""
        with contextlib.suppress(InfraError):
            self._host.wait()

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:
        try:
            self._pipe.send((list(jobs), timeout_seconds))
            kind, content = self._pipe.recv()
        except (EOFError, OSError):
            self._host.gone()
            raise PlaceCrashed("Ray's process ended") from None
        if kind == _CRASHED:
            raise PlaceCrashed(content)
        if kind == _TIMED_OUT:
            raise PlaceTimedOut(content)
        results: list[Result] = content
        return results

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
        self._process = ProcessPlace(log, host.folder)
        self._ray = RayPlace(host, slot)

    def prepare(self) -> None:
        """Wait a while for Ray, but not in slot 0."""
        with contextlib.suppress(InfraError):
            self._host.wait(0 if self._first else _PATIENCE_SECONDS)

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:
        return self._place().compile(jobs, timeout_seconds)

    def kill(self) -> None:
        self._process.kill()
        self._ray.kill()

    def close(self) -> None:
        self._process.close()

    def _place(self) -> Place:
        try:
            up = self._host.wait(0)
        except InfraError:
            return self._process
        if not up:
            return self._process
        self._process.close()
        return self._ray


def _main(argument: str, folder: str) -> None:
    """The child: start Ray, serve the slots, end when the driver is gone."""
    control, *pipes = far_ends(argument)
    try:
        _start(Path(folder), len(pipes))
    except Exception as error:
        control.send(_first_line(error))
        return
    for pipe in pipes:
        threading.Thread(target=_serve, args=(pipe,), daemon=True).start()
    control.send("")
    with contextlib.suppress(EOFError, OSError):
        control.recv()
    import ray

    ray.shutdown()


def _start(folder: Path, workers: int) -> None:
    token = folder / "ray_token"
    create_token(token)
    os.environ.update(
        TMPDIR=str(folder),  # what a killed worker leaves there goes with the run
        RAY_AUTH_MODE="token",
        RAY_AUTH_TOKEN_PATH=str(token),
        RAY_USAGE_STATS_ENABLED="0",
        RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
        RAY_raylet_start_wait_time_s=str(_START_SECONDS),
    )
    import ray

    ray.init(
        address="local",
        num_cpus=workers,
        num_gpus=0,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=_OBJECT_STORE_NBYTES,
        _node_ip_address="127.0.0.1",
        _temp_dir=str(folder / "ray"),
    )


def _serve(pipe: Connection) -> None:
    """One slot in the child: batches in, (kind, content) out."""
    while True:
        try:
            jobs, timeout_seconds = pipe.recv()
            pipe.send(_run(jobs, timeout_seconds))
        except (EOFError, OSError):
            return


def _run(jobs: list[Job], timeout_seconds: float) -> tuple[str, Any]:
    import ray
    from ray import exceptions

    from compile_worker import tasks

    task = tasks.compile_batch.remote(jobs)
    ready, _ = ray.wait([task], timeout=timeout_seconds)
    if not ready:
        ray.cancel(task, force=True)
        return _TIMED_OUT, f"no answer within {timeout_seconds:g} s"
    try:
        return _DONE, ray.get(task)
    except exceptions.RayError as error:
        return _CRASHED, f"the Ray worker ended: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2])
