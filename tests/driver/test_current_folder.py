"""No process that we start executes what lies in the current folder; Ray's: test_ray_worker.py."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from kit.search.stand_ins import SIM, toy_workload
from tilefarm.artifact import BuildFailure, CompileJob
from tilefarm.trace import Step, Trace

from compile_worker.codegen.hosts import known_names
from driver.benchmarks.isolated import isolated
from driver.farm.compiling.worker import ProcessWorker
from driver.farm.farms import LocalFarm
from driver.jobs import shipping

BAD = CompileJob(workload=toy_workload(), trace=Trace((Step("nosuch"),)), target=SIM)


def test_files_of_that_kind_are_executed_without_the_shield(executed: Path) -> None:
    subprocess.run([sys.executable, "-m", "driver.cli", "--version"], capture_output=True)
    assert str(Path.cwd()) in executed.read_text()
    executed.unlink()


@pytest.mark.usefixtures("executed")
def test_a_compile_process(tmp_path: Path) -> None:
    with closing(ProcessWorker(tmp_path / "log", tmp_path)) as place:
        assert isinstance(place.compile([BAD], 60.0)[0], BuildFailure)


@pytest.mark.usefixtures("executed")
def test_tracker_and_devices(tmp_path: Path) -> None:
    with closing(LocalFarm(SIM, 1, tmp_path, tmp_path)) as farm:
        farm.tracker(60.0)


@pytest.mark.usefixtures("executed")
def test_benchmarks_and_questions() -> None:
    assert list(isolated(int, ["7"], jobs=1)) == [7]
    assert known_names("aarch64-linux-gnu").processors


@pytest.mark.usefixtures("executed")
def test_the_command_of_a_job() -> None:
    command = shipping.job_command(sys.executable, "--help")
    done = subprocess.run(shlex.split(command), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow  # each of its processes is tried above
@pytest.mark.usefixtures("executed")
@pytest.mark.whole
def test_a_whole_run(tmp_path: Path) -> None:
    tilefarm = shutil.which("tilefarm", path=Path(sys.executable).parent)
    assert tilefarm
    words = ["demo", "--no-ray", "--workers", "1", "--devices", "1", "--trials", "8"]
    words += ["--out", str(tmp_path / "out")]
    done = subprocess.run([tilefarm, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
