"""A Ray cluster of several nodes, each on a machine of `kit.farm.machines`, behind one token."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

from kit.farm.machines import Machines
from tilefarm.trust.credentials import create_token

_STARTED_SECONDS = 240


class RayCluster:
    """Nodes that end with their machines.

    Args:
        machines: where they run.
        folder: for the token and Ray's files; a short path, for sockets have short names.
    """

    def __init__(self, machines: Machines, folder: Path) -> None:
        self.machines = machines
        self.token = folder / "ray.token"
        self.secret = create_token(self.token)
        self.environment = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_raylet_start_wait_time_s": str(_STARTED_SECONDS),
        }
        self._folder = folder
        self._port, self._web = free_port(), free_port()
        self._head = ""
        self._nodes: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        """Of the head, for nodes and for `--ray`."""
        return f"{self._head}:{self._port}"

    @property
    def dashboard(self) -> str:
        """On the head's loopback."""
        return f"127.0.0.1:{self._web}"

    def head(self, name: str, *, cpus: int) -> subprocess.Popen[bytes]:
        """Start the first node."""
        self._head = self.machines[name].address
        words = ["--head", "--port", str(self._port), "--node-ip-address", self._head]
        words += ["--include-dashboard", "true", "--dashboard-host", "127.0.0.1"]
        words += ["--dashboard-port", str(self._web)]
        return self._node(name, cpus, words)

    def node(self, name: str, *, cpus: int) -> subprocess.Popen[bytes]:
        """Start another one."""
        mine = self.machines[name].address
        return self._node(name, cpus, ["--address", self.address, "--node-ip-address", mine])

    def words(self) -> list[str]:
        """The options of a command that asks the cluster, from the head."""
        return ["--cluster", self.dashboard, "--cluster-token", str(self.token)]

    def wait_for(self, head: str, nodes: int) -> None:
        """Until the dashboard shows so many nodes alive; asked on the head's machine."""
        until = time.monotonic() + _STARTED_SECONDS
        code = (
            "import sys; from driver.jobs.dashboard import Dashboard;"
            "d = Dashboard(sys.argv[1], sys.argv[2]);"
            "print(d.cluster().nodes, d.cluster().cpus)"
        )
        words = [sys.executable, "-c", code, self.dashboard, self.secret]
        while True:
            answer = self.machines.run(head, words, seconds=60)
            if answer.returncode == 0 and answer.stdout.split()[0] == str(nodes):
                return
            waiting = time.monotonic() < until and all(n.poll() is None for n in self._nodes)
            assert waiting, answer.stderr + self.machines.said()
            time.sleep(0.5)

    def _node(self, name: str, cpus: int, words: list[str]) -> subprocess.Popen[bytes]:
        common = ["--num-cpus", str(cpus), "--object-store-memory", str(100 << 20), "--block"]
        common += ["--temp-dir", str(self._folder / name)]
        ray = [str(Path(sys.executable).parent / "ray"), "start", "--disable-usage-stats"]
        words = [*ray, *words, *common]
        self._nodes.append(self.machines.start(name, words, environment=self.environment))
        return self._nodes[-1]


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
