"""Row 9: a compile worker that dies costs its batch some time; only the culprit fails."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from kit.children.bad_compiler import AFTER
from kit.kernels.nests import EXAMPLES, SIM
from tilefarm.artifact import Artifact, BuildFailure, CompileJob
from tilefarm.measurement import Status
from tilefarm.trace import Trace

from compile_worker.worker import Result
from driver.farm.compiling import ray_worker as ray_workers
from driver.farm.compiling.executor import Builds, Workers
from driver.farm.compiling.ray_worker import RayHost, RayWorker
from driver.farm.compiling.reproducers import Reproducers
from driver.farm.compiling.worker import CHILD, ProcessWorker, Worker, WorkerLost
from driver.processes import descendants

from .fault_rows import Stopwatch

pytestmark = pytest.mark.timeout(600)

GOOD = ("affine", "softmax", "dense")
WITH_CULPRIT = ("affine", "add", "softmax", "dense")
CRASHES = 4
"""Of four, of two, of one, and of that one again."""
KILLING_SECONDS = 2.0


def compile_job(name: str) -> CompileJob:
    return CompileJob(workload=EXAMPLES[name], trace=Trace(), target=SIM)


class Compiling:
    """One worker, its batches, and what it leaves."""

    def __init__(self, workers: Sequence[Worker], folder: Path, *, module: str = CHILD) -> None:
        self.kept = Reproducers(folder / "kept")
        self._workers = Workers(
            workers,
            lambda trail: ProcessWorker(folder / "log", folder, module=module, trail=trail),
            timeout_seconds=60.0,
            kept=self.kept,
        )
        self._told: queue.SimpleQueue[Builds | BaseException] = queue.SimpleQueue()

    def submit(self, batch: Sequence[str]) -> None:
        jobs = enumerate(map(compile_job, batch))
        self._workers.submit(list(jobs), self._told.put)

    def results(self, batch: Sequence[str]) -> dict[int, Result]:
        """What became of a submitted batch, by number."""
        ended: dict[int, Result] = {}
        while len(ended) < len(batch):
            told = self._told.get(timeout=300)
            assert isinstance(told, Builds), told
            ended.update({build.number: build.result for build in told.builds})
        return ended

    def seconds(self, batch: Sequence[str]) -> float:
        """How long a batch takes in which nothing happens."""
        began = time.monotonic()
        self.submit(batch)
        results = self.results(batch).values()
        assert all(isinstance(made, Artifact) for made in results)
        return time.monotonic() - began

    def close(self) -> None:
        self._workers.close()


@pytest.fixture(params=["process", "ray"])
def compiling(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Compiling]:
    """A worker whose compiler aborts on an `add`; warm."""
    tests = Path(__file__).resolve().parents[1]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (tests, tests.parent))))
    monkeypatch.setattr(ray_workers, "HOST", "kit.children.bad_ray")
    with tempfile.TemporaryDirectory(prefix="t-") as folder:  # sockets have short names
        log = tmp_path / "log"
        host = RayHost(Path(folder), 1, log) if request.param == "ray" else None
        worker = (
            RayWorker(host, 0)
            if host
            else ProcessWorker(log, tmp_path, module="kit.children.bad_compiler")
        )
        begun = Compiling([worker], tmp_path, module="kit.children.bad_compiler")
        try:
            begun.seconds(GOOD)
            yield begun
        finally:
            begun.close()
            if host:
                host.close()


def test_an_abort_fails_its_culprit_alone(compiling: Compiling, stopwatch: Stopwatch) -> None:
    usual = compiling.seconds(GOOD)
    began = time.monotonic()
    compiling.submit(WITH_CULPRIT)
    results = compiling.results(WITH_CULPRIT)
    stopwatch.took((time.monotonic() - began - usual) / CRASHES)
    culprit = results.pop(WITH_CULPRIT.index("add"))
    assert isinstance(culprit, BuildFailure)
    assert culprit.status is Status.COMPILE_CRASH
    assert all(isinstance(made, Artifact) for made in results.values())
    (kept,) = compiling.kept
    assert (kept.digest, kept.last.name) == (culprit.kept, AFTER)
    assert "add" in kept.last.ir


def workers_of_ray() -> list[int]:
    """The processes that compile for the Ray below this one; Ray's own agents are none."""
    found = []
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            name = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
            if name.startswith("ray::") and not name.endswith("Agent"):
                found.append(pid)
    return found


def kill(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def test_kills_of_all_ray_workers_again_and_again_fail_nobody(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="t-") as folder:  # sockets have short names
        host = RayHost(Path(folder), 2, tmp_path / "log")
        compiling = Compiling([RayWorker(host, 0), RayWorker(host, 1)], tmp_path)
        try:
            compiling.seconds(GOOD)
            kill(workers_of_ray(), signal.SIGSTOP)  # so that they have their batches when they die
            for _ in range(2):
                compiling.submit(GOOD[:1])
            until = time.monotonic() + KILLING_SECONDS
            while time.monotonic() < until:
                kill(workers_of_ray(), signal.SIGKILL)
                time.sleep(0.05)
            made = [*compiling.results(GOOD[:1]).values(), *compiling.results(GOOD[:1]).values()]
            assert all(isinstance(each, Artifact) for each in made), made
            compiling.seconds(GOOD)
        finally:
            compiling.close()
            host.close()
    assert not list(compiling.kept)


def test_rays_guard_of_the_memory_fails_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.001")  # to Ray, the machine is always full
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "50")
    many = GOOD * 10  # long enough to be killed
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        host = RayHost(Path(folder), 1, tmp_path / "log")
        worker = RayWorker(host, 0)
        compiling = Compiling([worker], tmp_path)
        try:
            worker.prepare()
            with pytest.raises(WorkerLost, match="OutOfMemoryError"):
                worker.compile([compile_job(each) for each in many], 60.0)
            compiling.submit(GOOD)
            made = compiling.results(GOOD).values()
        finally:
            compiling.close()
            host.close()
    assert all(isinstance(each, Artifact) for each in made), made
    assert not list(compiling.kept)


def test_a_kill_from_outside_fails_nobody(tmp_path: Path, stopwatch: Stopwatch) -> None:
    worker = ProcessWorker(tmp_path / "log", tmp_path)
    compiling = Compiling([worker], tmp_path)
    try:
        compiling.seconds(GOOD)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGSTOP)  # so that it has the batch when it dies
        compiling.submit(GOOD[:1])
        time.sleep(0.3)
        with stopwatch.running():
            os.kill(worker.pid, signal.SIGKILL)
            (made,) = compiling.results(GOOD[:1]).values()
    finally:
        compiling.close()
    assert isinstance(made, Artifact)
    assert not list(compiling.kept)
