"""A farm of several machines: Ray's nodes, a tracker and devices with TLS, jobs from outside.

The machines are network namespaces where those are permitted (root on Linux), else processes.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

import onnx
import pytest
from kit.built import no_simulator, require
from kit.farm.in_process import eventually
from kit.farm.machines import Machines
from kit.farm.ray_cluster import RayCluster, free_port
from kit.networks.onnx_models import saved_beside

from driver import cli
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL

pytestmark = [pytest.mark.whole, pytest.mark.slow, pytest.mark.timeout(900)]

FAIR = 3.0
"""Two equal jobs at once: neither measures so many times as fast as the other."""


QUEUED = re.compile(r"waiting for the cluster: \d+ batch(es)? in its queue, the first for \d+ s")

HOLD = """
import sys, time, ray
from pathlib import Path

def hold(sign):
    Path(sign).touch()
    time.sleep(600)

ray.init(address=sys.argv[1], log_to_driver=False)
ray.get(ray.remote(num_cpus=2)(hold).remote(sys.argv[2]))
"""
"""A program that takes both processors."""


class ClusterFarm:
    """Head with tracker, a node that compiles, and two devices; three machines."""

    def __init__(self, machines: Machines, folder: Path) -> None:
        self.machines = machines
        self.folder = folder
        self.ray = RayCluster(machines, folder)
        self.tracker = f"{machines['head'].address}:{free_port()}"

    def start(self) -> None:
        self.ray.head("head", cpus=0)
        self._certify()
        words = ["--listen", self.tracker, "--audit", str(self.folder / "audit")]
        self._serve("head", "tracker", "hub", *words)
        self.ray.wait_for("head", 1)
        self.ray.node("node", cpus=2)
        for name in ("board1", "board2"):
            address = f"{self.machines['boards'].address}:0"
            mine = ["--name", name, "--listen", address, "--tracker", self.tracker]
            mine += ["--token-file", str(self.folder / name / "token")]
            self._serve("boards", "device", name, *mine, "--folder", str(self.folder / "b" / name))
        self.ray.wait_for("head", 2)
        farm = ["--tracker", self.tracker, *self._proof("ann")]
        eventually(lambda: self.said("devices", *farm).stdout.count("board") == 2, seconds=60)

    def said(self, *words: str, seconds: float = 120.0) -> CompletedProcess[str]:
        """A tilefarm command on the head."""
        return self.machines.run(
            "head", [sys.executable, "-m", "driver.cli", *words], seconds=seconds
        )

    def submitted(self, *words: str, network: str = "zoo:digits") -> dict[str, object]:
        """What `submit` answers to a job with devices of the tracker."""
        farm = ["--tracker", self.tracker, *self._proof("ann"), "--devices", "1"]
        folder = ["--folder", str(self.folder / "runs"), "--json"]
        sent = self.said("submit", network, *words, *farm, *folder, *self.ray.words())
        assert sent.returncode == 0, sent.stderr + self.machines.said()
        answer: dict[str, object] = json.loads(sent.stdout)
        return answer

    def followed(self, job: object) -> str:
        """The whole log of a job that ends well."""
        log = self.said("logs", str(job), "--follow", *self.ray.words(), seconds=400)
        assert log.returncode == 0, log.stdout + log.stderr
        return log.stdout

    def log(self, job: object) -> str:
        """What a job has printed so far."""
        return self.said("logs", str(job), *self.ray.words()).stdout

    @contextmanager
    def full(self) -> Iterator[None]:
        """Within, all processors of the cluster are somebody else's."""
        sign = self.folder / "full"
        words = [sys.executable, "-c", HOLD, self.ray.address, str(sign)]
        other = self.machines.start("head", words, environment=self.ray.environment)
        try:
            eventually(sign.exists, seconds=100)
            yield
        finally:
            self.machines.end(other)

    def _serve(self, machine: str, command: str, name: str, *words: str) -> None:
        tls = ["--tls", str(self.folder / name), "--tokens", str(self.folder / "tokens.json")]
        program = [sys.executable, "-m", "driver.cli", command]
        self.machines.start(machine, [*program, *words, *tls])

    def _proof(self, name: str) -> list[str]:
        return ["--tls", str(self.folder / name), "--token-file", str(self.folder / name / "token")]

    def _certify(self) -> None:
        """What `tilefarm pki --help` says, for four parties."""
        authority = str(self.folder / "ca")
        assert cli.main(["pki", "init", authority]) == 0
        head, boards = self.machines["head"].address, self.machines["boards"].address
        parties = [("tracker", "hub", head), ("submit", "ann", "")]
        parties += [("device", "board1", boards), ("device", "board2", boards)]
        for role, name, host in parties:
            words = ["--role", role, "--name", name, "--out", str(self.folder / name)]
            words += ["--host", host] if host else []
            assert cli.main(["pki", "issue", authority, *words]) == 0
            if role != "tracker":
                table = ["--tokens", str(self.folder / "tokens.json")]
                out = ["--user", name, "--out", str(self.folder / name / "token")]
                assert cli.main(["pki", "token", *table, "--role", role, *out]) == 0


@pytest.fixture(scope="module")
def farm() -> Iterator[ClusterFarm]:
    require(no_simulator)
    with tempfile.TemporaryDirectory(prefix="t-") as name:  # sockets have short names
        folder = Path(name)
        (folder / "log").mkdir()
        with Machines(["head", "node", "boards"], folder / "log") as machines:
            kind = "network namespaces" if machines.separate else "processes of one machine"
            print(f"\nmachines: {kind}", file=sys.stderr)
            running = ClusterFarm(machines, folder)
            running.start()
            yield running


def test_two_jobs_share_a_cluster_and_a_farm(farm: ClusterFarm) -> None:
    sent = [farm.submitted("--trials", "60", "--seed", seed) for seed in ("1", "2")]
    assert sent[0]["uploaded_nbytes"] != 0
    assert sent[1]["uploaded_nbytes"] == 0, "model and data are there already"
    with ThreadPoolExecutor() as both:
        logs = list(both.map(farm.followed, [job["id"] for job in sent]))
    speeds = []
    for log in logs:
        assert "0 differ from the reference" in log
        assert "compiled on Ray, 2 workers" in log
        found = re.search(r"search: 60 trials in ([0-9.]+) s", log)
        assert found, log
        speeds.append(60 / float(found[1]))
    assert max(speeds) < FAIR * min(speeds), speeds
    audit = (farm.folder / "audit").read_text()
    assert {"board1", "board2"} <= set(re.findall(r"board\d", audit))


def test_a_job_for_the_head_s_processor(farm: ClusterFarm) -> None:
    """Its devices are on the head; Ray compiles."""
    folder = ["--folder", str(farm.folder / "runs"), "--json"]
    words = ["--target", "cpu", "--trials", "4", "--devices", "1", *folder, *farm.ray.words()]
    sent = farm.said("submit", "zoo:digits", *words)
    assert sent.returncode == 0, sent.stderr
    log = farm.followed(json.loads(sent.stdout)["id"])
    assert "compiled on Ray, 2 workers" in log
    assert "device cpu0: " in log
    assert "0 differ from the reference" in log


def test_weights_beside_a_model_reach_the_cluster(farm: ClusterFarm) -> None:
    place = farm.folder / "net"
    place.mkdir()
    network = str(saved_beside(onnx.load(DEMO_MODEL), place, "net.onnx", "w/net.bin"))
    words = ("--calibrate", str(DEMO_CALIBRATION), "--trials", "5")
    for uploads in (True, False):
        sent = farm.submitted(*words, network=network)
        assert bool(sent["uploaded_nbytes"]) == uploads
        assert "0 differ from the reference" in farm.followed(sent["id"])


def test_a_job_stands_in_the_queue_of_a_full_cluster(farm: ClusterFarm) -> None:
    with farm.full():
        sent = farm.submitted("--trials", "5", "--seed", "3")
        eventually(lambda: QUEUED.search(farm.log(sent["id"])) is not None, seconds=100)
    assert "0 differ from the reference" in farm.followed(sent["id"])


def test_what_a_job_has_made_comes_back(farm: ClusterFarm) -> None:
    sent = farm.submitted("--trials", "10", "--seed", "1")
    assert "60 from earlier sessions" in farm.followed(sent["id"]), "its run is continued"
    got = farm.folder / "got"
    out = farm.said("fetch", str(sent["id"]), "--out", str(got), *farm.ray.words())
    assert out.returncode == 0, out.stderr
    assert (got / "report.html").stat().st_size > 1000
    manifest = json.loads((got / "program/manifest.json").read_text())
    assert manifest
    rows = json.loads(farm.said("jobs", "--json", *farm.ray.words()).stdout)
    assert {row["status"] for row in rows} == {"SUCCEEDED"}
