"""Compiling on Ray: a local cluster that starts in the background, and one slot of it.

The driver's one door to ray. Tasks are stateless and never retried by Ray: the executor owns what a
death means.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tilefarm.errors import InfraError

from driver.places import Job, Place, PlaceCrashed, PlaceTimedOut, ProcessPlace, Result
from driver.token import create_token

_OBJECT_STORE_NBYTES: Final = 100 * 1024 * 1024
_PATIENCE_SECONDS: Final = 8.0
_START_SECONDS: Final = 120
"""On a busy machine Ray's own 30 s are not enough."""


class RayPlace:
    """One slot of a Ray cluster: tasks without state, retries and results left behind."""

    def __init__(self) -> None:
        self._task: Any = None

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:
        import ray
        from ray import exceptions

        from compile_worker import tasks

        task = self._task = tasks.compile_batch.remote(list(jobs))
        ready, _ = ray.wait([task], timeout=timeout_seconds)
        if not ready:
            ray.cancel(task, force=True)
            raise PlaceTimedOut(f"no answer within {timeout_seconds:g} s")
        try:
            results: list[Result] = ray.get(task)
        except (
            exceptions.WorkerCrashedError,
            exceptions.OutOfMemoryError,
            exceptions.TaskCancelledError,
        ) as error:
            raise PlaceCrashed(f"the Ray worker ended: {_first_line(error)}") from None
        finally:
            self._task = None
        return results

    def kill(self) -> None:
        task = self._task
        if task is not None:
            import ray

            ray.cancel(task, force=True)

    def close(self) -> None:
        """Nothing: the cluster is closed by who started it."""


class RayCluster:
    """A local Ray, started in the background and ended with the run.

    Ray listens on every interface and reads its own settings from the environment; what can be
    closed is: a random token in a file of mode 0600, no dashboard, no usage reports, nothing in the
    home folder.

    Args:
        folder: for the token and Ray's sockets; a short path, for sockets have short names.
        workers: tasks at once.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._workers = workers
        self._up = threading.Event()
        self._closing = threading.Event()
        self._why_not = ""
        self._thread = threading.Thread(target=self._run, name="ray", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it is up, after waiting at most so long.

        Raises:
            InfraError: it will never be.
        """
        up = self._up.wait(seconds)
        if self._why_not:
            raise InfraError(f"Ray did not start: {self._why_not}", "`--no-ray` works without it")
        return up

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        """Start it, stay, end it: Ray's processes die with the thread that started them."""
        try:
            self._init()
        except Exception as error:
            self._why_not = _first_line(error)
        self._up.set()
        self._closing.wait()
        import ray

        ray.shutdown()

    def _init(self) -> None:
        token = self._folder / "ray_token"
        create_token(token)
        os.environ.update(
            RAY_AUTH_MODE="token",
            RAY_AUTH_TOKEN_PATH=str(token),
            RAY_USAGE_STATS_ENABLED="0",
            RAY_raylet_start_wait_time_s=str(_START_SECONDS),
            RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
        )
        import ray

        logging.getLogger("ray").setLevel(logging.ERROR)
        ray.init(
            address="local",
            num_cpus=self._workers,
            num_gpus=0,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            logging_level=logging.ERROR,
            object_store_memory=_OBJECT_STORE_NBYTES,
            _node_ip_address="127.0.0.1",
            _temp_dir=str(self._folder / "ray"),
        )


class RayWhenUp:
    """A Ray slot; a process of ours while the cluster is not up.

    The `first` slot does not wait for it at all, so that something is compiled at once; the others
    wait a while, for a process that is used for seconds only costs more than it gives.
    """

    def __init__(self, cluster: RayCluster, log: Path, *, first: bool) -> None:
        self._cluster = cluster
        self._process = ProcessPlace(log)
        self._first = first
        self._ray = RayPlace()

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:
        return self._place().compile(jobs, timeout_seconds)

    def kill(self) -> None:
        self._process.kill()
        self._ray.kill()

    def close(self) -> None:
        self._process.close()

    def _place(self) -> Place:
        try:
            up = self._cluster.wait(0 if self._first else _PATIENCE_SECONDS)
        except InfraError:
            return self._process
        if not up:
            return self._process
        self._process.close()
        return self._ray


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
