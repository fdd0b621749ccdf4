"""The program of the child process that runs Ray: it starts or joins one, and serves the slots.

A batch comes through a slot's pipe and goes to some worker of Ray's as one task, which is stateless
and never retried by Ray: the executor owns what a death means. Ray says that a worker died, not of
what; that a node, the node's daemon or too little memory was the reason, it does say.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
import traceback
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tilefarm.errors import InfraError, TilefarmError
from tilefarm.interpreter import shield_children
from tilefarm.threads import start_thread
from tilefarm.trust.credentials import create_token
from tilefarm.watch.log import Log

from driver.farm.compiling.cluster import MOST_WORKERS, join
from driver.farm.compiling.compile_log import compile_log, tell
from driver.farm.compiling.discovery import PLUGINS, PLUGINS_SHARE, PRIVATE
from driver.farm.compiling.pipes import far_ends, offer

if TYPE_CHECKING:
    from compile_worker.worker import Job

DONE, CRASHED, TIMED_OUT, LOST, OVER = "done", "crashed", "timed out", "lost", "over"
"""What is answered to a batch; after the last one there is no Ray any more."""
BEGAN: Final = "began"
"""Said before that, once a worker has taken it."""

_BROKEN: Final = 70
_DAEMONS: Final = frozenset({"raylet", "gcs_server"})
"""Those without which Ray compiles nothing."""
_LOOK_SECONDS: Final = 0.2
_OBJECT_STORE_NBYTES: Final = 100 * 1024 * 1024
_START_SECONDS: Final = 120
"""On a busy machine Ray's own 30 s are not enough."""
_LOOPBACK: Final = "127.0.0.2"
"""Ray takes 127.0.0.1 for a name and tells everybody the address that it finds behind it."""


def main(
    argument: str,
    folder: str,
    form: str,
    level: str,
    cluster: str,
    token: str,
    workers: str,
    plugins: str,
) -> None:
    """The child: start or join Ray, offer the slots and serve them, end when the driver is gone.

    `workers` slots, or of a cluster as many as it has CPUs if they are 0. `plugins` is empty if
    jobs bring none.
    """
    count = int(workers)
    (control,) = far_ends(argument)
    log = compile_log(form, level)
    os.chdir(folder)  # Ray has its workers import from the current folder, too
    shield_children()
    try:
        if cluster:
            cpus = join(cluster, token, with_plugins=bool(plugins))
            count = count or min(cpus, MOST_WORKERS)
        else:
            start_ray(Path(folder), count)
    except Exception as error:
        known = cluster and isinstance(error, TilefarmError)
        control.send(error if known else not_up(_first_line(error)))
        return
    control.send(count)
    for pipe in offer(control, count):
        start_thread(partial(_serve, pipe, log), name="slot", broken=_end)
    with contextlib.suppress(EOFError, OSError):
        control.recv()
    # The reaper ends what Ray has started.


def start_ray(folder: Path, workers: int) -> None:
    """A Ray of our own on this machine, which lives as long as this process."""
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
        resources={PRIVATE: 1, PLUGINS: 1},
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=_OBJECT_STORE_NBYTES,
        _node_ip_address=_LOOPBACK,
        _temp_dir=str(folder / "ray"),
    )
    start_thread(_watch, name="daemons", broken=_end)


def _watch() -> None:
    """Ends with Ray's daemons; Ray itself waits a minute for them to come back.

    Raises:
        RuntimeError: one has died.
    """
    from ray._private.worker import _global_node

    while not (dead := {kind for kind, _ in _global_node.dead_processes()} & _DAEMONS):
        time.sleep(_LOOK_SECONDS)
    raise RuntimeError(f"Ray's {' and '.join(sorted(dead))} died")


def _end(error: Exception) -> None:
    """Let the driver see that a slot is served no more: it takes the end of this for Ray's."""
    traceback.print_exception(error)
    sys.stderr.flush()
    os._exit(_BROKEN)


def _serve(pipe: Connection, log: Log) -> None:
    """One slot in the child: batches in, (kind, content) out, up to two for each."""
    while True:
        try:
            for kind, content in _run(*pipe.recv()):
                if kind == DONE:
                    tell(log, content)
                pipe.send((kind, content))
        except (EOFError, OSError):
            return


def _run(jobs: list[Job], timeout_seconds: float) -> Iterator[tuple[str, Any]]:
    """That a batch began on some worker of Ray's, which may be late, and what became of it."""
    import ray
    from ray import exceptions

    from compile_worker import tasks

    try:
        allowed = {PLUGINS: PLUGINS_SHARE} if any(job.plugins for job in jobs) else {}
        task = tasks.compile_batch.options(resources=allowed).remote(jobs)
        ray.get(next(task))
        yield BEGAN, None
        ready, _ = ray.wait([task], timeout=timeout_seconds)
        if ready:
            yield DONE, ray.get(next(task))
        else:
            ray.cancel(task, force=True)
            yield TIMED_OUT, f"no answer within {timeout_seconds:g} s"
    except (exceptions.WorkerCrashedError, exceptions.RayTaskError) as error:
        yield CRASHED, f"the Ray worker ended: {_first_line(error)}"
    except exceptions.LocalRayletDiedError as error:
        yield OVER, _first_line(error)
    except exceptions.RayError as error:
        yield LOST, f"Ray lost the batch: {_first_line(error)}"


def not_up(why: str) -> InfraError:
    """What is told of a Ray of one's own that does not start, or has ended."""
    return InfraError(f"Ray is not up: {why}", "`--no-ray` works without it")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


if __name__ == "__main__":
    main(*sys.argv[1:])
