"""A Ray that others fill: batches wait for it without blame, and a run does not wait for ever."""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kit.farm.in_process import eventually
from kit.search.stand_ins import SIM, toy_workload
from tilefarm.artifact import BuildFailure, CompileJob
from tilefarm.errors import ClusterLostError, InfraError
from tilefarm.measurement import Status
from tilefarm.trace import Step, Trace

from driver.farm.compiling import ray_worker
from driver.farm.compiling.ray_worker import RayHost, RayWorker
from driver.farm.compiling.worker import WorkerLost

pytestmark = [pytest.mark.whole, pytest.mark.slow]

BAD = CompileJob(workload=toy_workload(), trace=Trace((Step("nosuch"),)), target=SIM)
LIMIT_SECONDS = 10.0
"""For a batch: a worker needs much less once it has begun, even on a busy machine."""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a host that is full until `free` is there has its files."""
    tests = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (tests, tests.parent))))
    monkeypatch.setattr(ray_worker, "HOST", "kit.children.full_ray")
    with tempfile.TemporaryDirectory(prefix="t-") as name:  # sockets have short names
        yield Path(name)


def test_the_time_in_the_queue_is_not_a_batchs(folder: Path) -> None:
    host = RayHost(folder, 2, folder / "log", cluster="10.0.0.1:6379")
    try:
        with ThreadPoolExecutor() as slots:
            compiled = [
                slots.submit(RayWorker(host, slot).compile, [BAD], LIMIT_SECONDS) for slot in (0, 1)
            ]
            assert host.wait(100)
            began = time.monotonic()
            eventually(lambda: "2 batches" in host.waits_for, seconds=60)
            told = r"waiting for the cluster: 2 batches in its queue, the first for \d+ s"
            assert re.fullmatch(told, host.waits_for)
            threading.Event().wait(began + LIMIT_SECONDS + 2 - time.monotonic())
            (folder / "free").touch()
            for slot in compiled:
                (result,) = slot.result(100)
                assert isinstance(result, BuildFailure)
                assert result.status is Status.COMPILE_ERROR
        assert host.waits_for == ""
    finally:
        host.close()


def test_a_cluster_that_stays_full_ends_the_run_which_goes_on_later(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_worker, "CLUSTER_SECONDS", 3.0)
    host = RayHost(folder, 1, folder / "log", cluster="10.0.0.1:6379")
    try:
        full = r"10\.0\.0\.1:6379 is full: none of our batches began within 0\.05 min\n  try: "
        with pytest.raises(ClusterLostError, match=full) as lost:
            RayWorker(host, 0).compile([BAD], LIMIT_SECONDS)
        assert lost.value.exit_code == 75
    finally:
        host.close()


def test_a_ray_of_ones_own_that_gives_no_worker_is_given_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_worker, "WORKER_SECONDS", 3.0)
    host = RayHost(folder, 1, folder / "log")
    try:
        assert host.wait(100)
        with pytest.raises(WorkerLost, match=r"none of our batches began within 0\.05 min"):
            RayWorker(host, 0).compile([BAD], LIMIT_SECONDS)
        with pytest.raises(InfraError, match="Ray is not up: none of our batches"):
            host.wait(0)
    finally:
        host.close()
