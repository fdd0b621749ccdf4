"""Timed kernels stay on one core; the server says which, and others go where the system wants."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tilefarm.digest import Digest
from tilefarm.measurement import Precision

from device_server.runner.affinity import Affinity
from device_server.runner.runner import Runner

from .conftest import Blobs
from .test_runner import dense_job, measured

EVERYWHERE = os.sched_getaffinity(0)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_process_stays_on_one_core_until_it_may_roam(sleeper: subprocess.Popen[bytes]) -> None:
    affinity = Affinity(sleeper.pid)
    affinity.roam()
    assert os.sched_getaffinity(sleeper.pid) == EVERYWHERE
    for _ in range(2):
        affinity.stay()
        (core,) = os.sched_getaffinity(sleeper.pid)
        assert core in EVERYWHERE
    affinity.roam()
    assert os.sched_getaffinity(sleeper.pid) == EVERYWHERE


def test_one_that_is_gone_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    affinity = Affinity(sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    affinity.stay()
    affinity.roam()


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
