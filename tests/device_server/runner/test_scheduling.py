"""Timed kernels stay on one core and go first there; others run where and when the system wants."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kit.children.blobs import Blobs
from tilefarm.digest import Digest
from tilefarm.measurement import Precision

from device_server.runner.runner import Runner
from device_server.runner.scheduling import Scheduling

from .test_runner import dense_job, measured

EVERYWHERE = os.sched_getaffinity(0)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process
        process.kill()


def niceness(pid: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, pid)


def test_a_process_is_undisturbed_on_one_core_until_it_is_ordinary_again(
    sleeper: subprocess.Popen[bytes],
) -> None:
    scheduling = Scheduling(sleeper.pid)
    scheduling.ordinary()
    assert os.sched_getaffinity(sleeper.pid) == EVERYWHERE
    for _ in range(2):
        scheduling.undisturbed()
        (core,) = os.sched_getaffinity(sleeper.pid)
        assert core in EVERYWHERE
        assert niceness(sleeper.pid) in (-20, niceness(0)), "as far as it is allowed"
    scheduling.ordinary()
    assert os.sched_getaffinity(sleeper.pid) == EVERYWHERE
    assert niceness(sleeper.pid) == niceness(0)


def test_one_that_is_gone_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    scheduling = Scheduling(sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    scheduling.undisturbed()
    scheduling.ordinary()


def _fewest_cores_of_a_child() -> int:
    """Of all processes that this one has."""
    tasks = Path("/proc/self/task").iterdir()
    children = {int(pid) for task in tasks for pid in (task / "children").read_text().split()}
    return min(len(os.sched_getaffinity(pid)) for pid in children)


def test_timed_kernels_alone_are_kept_on_a_core(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    free = dense_job(blobs, compiled["good"])
    timed = replace(free, precision=Precision(error=0.5, seconds=2.0))
    for job, cores in ((timed, 1), (timed, 1), (free, len(EVERYWHERE)), (timed, 1)):
        measured(runner.run(job, blobs.path))
        assert _fewest_cores_of_a_child() == cores
