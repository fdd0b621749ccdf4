"""Row 10: a node of Ray's is lost, which costs nothing, then its head: code 75, and it goes on."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.built import no_simulator, require
from kit.farm.machines import Machines
from kit.farm.ray_cluster import RayCluster
from tilefarm.errors import ClusterLostError
from tilefarm.measurement import Status

from tuner.trial_store import TrialStore

from .fault_rows import Stopwatch

pytestmark = pytest.mark.timeout(600)

GONE = "is gone\n  try: nothing measured is lost: once it is back, the same command continues"


@pytest.fixture
def folder() -> Iterator[Path]:
    require(no_simulator)
    with tempfile.TemporaryDirectory(prefix="t-") as name:  # sockets have short names
        (Path(name) / "log").mkdir()
        yield Path(name)


def count(out: Path) -> int:
    """Trials that are kept."""
    records = out / "records.sqlite"
    if not records.exists():
        return 0
    with TrialStore(records, read_only=True) as store:
        return store.count()


def more_than(trials: int, out: Path, process: subprocess.Popen[bytes], said: Machines) -> int:
    """How many are kept once it is more than that."""
    until = time.monotonic() + 200
    while (found := count(out)) <= trials:
        assert process.poll() is None, said.said()
        assert time.monotonic() < until, said.said()
        time.sleep(0.2)
    return found


def test_a_run_outlives_a_node_and_continues_after_the_head(
    folder: Path, stopwatch: Stopwatch
) -> None:
    out = folder / "out"
    with Machines(["head", "node"], folder / "log") as machines:
        ray = RayCluster(machines, folder)
        head = ray.head("head", cpus=1)
        ray.wait_for("head", 1)
        node = ray.node("node", cpus=1)
        ray.wait_for("head", 2)
        tune = [sys.executable, "-m", "driver.cli", "tune", "zoo:digits", "--out", str(out)]
        cluster = ["--ray", ray.address, "--ray-token", str(ray.token), "--workers", "2"]
        run = machines.start("head", [*tune, *cluster, "--trials", "5000"])
        before = more_than(0, out, run, machines)
        machines.end(node)
        before = more_than(before + 20, out, run, machines)
        machines.end(head)
        with stopwatch.running():
            assert run.wait(120) == ClusterLostError.exit_code, machines.said()
        assert GONE in machines.said()
        kept = count(out)
        assert kept >= before
        again = [*tune, "--no-ray", "--trials", str(kept + 5)]
        ended = machines.run("head", again, seconds=200)
        assert ended.returncode == 0, ended.stderr
        assert f"{kept} from earlier sessions" in ended.stdout
        assert count(out) == kept + 5
    with TrialStore(out / "records.sqlite", read_only=True) as store:
        assert set(store.statuses()) <= {Status.OK}, "a lost node is nobody's crash"
