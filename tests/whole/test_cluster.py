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
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from kit.farm import eventually
from kit.machines import Machines
from kit.ray_cluster import RayCluster, free_port
from kit.simulated import unbuilt

from driver import cli

pytestmark = [pytest.mark.whole, pytest.mark.slow, pytest.mark.timeout(900)]

FAIR = 3.0
"""Two equal jobs at once: neither measures so many times as fast as the other."""


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

    def submitted(self, *words: str) -> dict[str, object]:
        """What `submit` answers to a job with devices of the tracker."""
        farm = ["--tracker", self.tracker, *self._proof("ann"), "--devices", "1"]
        folder = ["--folder", str(self.folder / "runs"), "--json"]
        sent = self.said("submit", "zoo:digits", *words, *farm, *folder, *self.ray.words())
        assert sent.returncode == 0, sent.stderr + self.machines.said()
        answer: dict[str, object] = json.loads(sent.stdout)
        return answer

    def followed(self, job: object) -> str:
        """The whole log of a job that ends well."""
        log = self.said("logs", str(job), "--follow", *self.ray.words(), seconds=400)
        assert log.returncode == 0, log.stdout + log.stderr
        return log.stdout

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
    if unbuilt():
        pytest.skip(unbuilt())
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
