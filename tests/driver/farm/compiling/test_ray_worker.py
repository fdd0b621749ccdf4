"""Ray behind its own process: up, not up, never up, gone."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.farm.in_process import eventually
from kit.kernels.nests import EXAMPLES
from kit.search.stand_ins import SIM, toy_workload
from tilefarm.artifact import BuildFailure, CompileJob, PluginText
from tilefarm.errors import InfraError, UnreachableError
from tilefarm.measurement import Status
from tilefarm.trace import Step, Trace

from driver.farm.compiling import discovery
from driver.farm.compiling.ray_worker import RayHost, RayWhenUp, RayWorker
from driver.farm.compiling.worker import WorkerLost, WorkerTimedOut
from driver.processes import descendants

pytestmark = pytest.mark.whole

PLUGIN = PluginText(
    "mine.py",
    b"""
from compile_worker.plugins.custom_pass import custom_pass

@custom_pass(after="flatten")
def mine(func, target):
    return 1 / 0
""",
)
WITH_PASS = CompileJob(
    workload=EXAMPLES["add"],
    trace=Trace((Step("lower_with", ("mine", PLUGIN.digest.hex)),)),
    target=SIM,
    plugins=(PLUGIN,),
)
BAD = CompileJob(workload=toy_workload(), trace=Trace((Step("nosuch"),)), target=SIM)


@pytest.fixture
def others() -> frozenset[int]:
    """Processes that earlier tests have left, such as the one that multiprocessing keeps."""
    return frozenset(descendants(os.getpid()))


@pytest.fixture
def host(others: frozenset[int]) -> Iterator[RayHost]:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="t-") as folder:  # sockets have short names
        running = RayHost(Path(folder), 2, Path(folder) / "log")
        yield running
        running.close()


@pytest.mark.usefixtures("executed")  # by Ray's host, its daemons and its workers
def test_ray_answers_typed_and_survives_kills_and_timeouts(
    host: RayHost, others: frozenset[int]
) -> None:
    worker = RayWorker(host, 0)
    worker.prepare()
    (result,) = worker.compile([BAD], 60.0)
    assert isinstance(result, BuildFailure)
    assert result.status is Status.COMPILE_ERROR
    (brought,) = worker.compile([WITH_PASS], 60.0)
    assert isinstance(brought, BuildFailure)
    assert brought.why.startswith("pass mine of mine.py fails: ZeroDivisionError")
    with pytest.raises(WorkerTimedOut):
        worker.compile([BAD] * 2000, 0.001)
    assert isinstance(worker.compile([BAD], 60.0)[0], BuildFailure)
    daemons = [
        words for words in discovery.running_commands() if str(host.folder) in " ".join(words)
    ]
    assert daemons
    with pytest.raises(UnreachableError):  # `--ray auto` does not mean it
        discovery.found_here(daemons)
    token = host.folder / "ray_token"
    assert token.stat().st_mode & 0o777 == 0o600
    below = set(descendants(os.getpid())) - others
    assert below, "the host is a process"
    host.close()
    assert not below & set(descendants(os.getpid()))


@pytest.mark.slow
def test_the_end_of_the_host_is_a_loss_and_then_a_process_serves(
    host: RayHost, tmp_path: Path
) -> None:
    slot = RayWhenUp(host, 0, tmp_path / "log")
    slot.prepare()
    assert isinstance(slot.compile([BAD], 60.0)[0], BuildFailure), "before Ray is up"
    host.wait(100)
    assert isinstance(slot.compile([BAD], 60.0)[0], BuildFailure), "on Ray"
    host.kill()
    eventually(lambda: over(host))  # until then it may answer, and then the slot does without it
    with pytest.raises(InfraError, match="--no-ray"):
        host.wait(0)
    with pytest.raises(WorkerLost):
        RayWorker(host, 0).compile([BAD], 60.0)
    assert isinstance(slot.compile([BAD], 60.0)[0], BuildFailure), "after Ray"
    slot.close()


@pytest.mark.slow
def test_the_end_of_rays_daemon_is_the_end_of_ray_and_then_a_process_serves(
    host: RayHost, others: frozenset[int], tmp_path: Path
) -> None:
    slot = RayWhenUp(host, 0, tmp_path / "log")
    host.wait(100)
    assert isinstance(slot.compile([BAD], 60.0)[0], BuildFailure), "on Ray"
    (daemon,) = (pid for pid in set(descendants(os.getpid())) - others if name(pid) == "raylet")
    os.kill(daemon, signal.SIGKILL)
    while not over(host):  # a worker that lives on may still answer
        with contextlib.suppress(WorkerLost):
            slot.compile([BAD], 60.0)
    assert isinstance(slot.compile([BAD], 60.0)[0], BuildFailure), "after Ray"
    slot.close()


def over(host: RayHost) -> bool:
    try:
        host.wait(0)
    except InfraError:
        return True
    return False


def name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def test_a_host_that_cannot_start_is_told(tmp_path: Path) -> None:
    (tmp_path / "ray_token").write_text("in the way")
    host = RayHost(tmp_path, 1, tmp_path / "log")
    with pytest.raises(InfraError, match=r"Ray is not up: SettingsError.*token"):
        host.wait(60)
    host.close()
