"""A farm of real processes, as a user starts them: tracker and devices that tests may kill."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from kit.children.proxied_tune import ProxiedLeases
from kit.farm.computing import computing
from kit.farm.parties import Parties
from kit.farm.proxy import Proxy
from kit.kernels.c_kernels import blobs
from kit.living import lives
from tilefarm.clock import SystemClock
from tilefarm.closing import Closing
from tilefarm.lease import Lease
from tilefarm.measurement import RunJob
from tilefarm.names import IdSource
from tilefarm.target import TARGETS
from tilefarm.trust.access import FarmRole
from tilefarm.trust.credentials import create_token
from tilefarm.trust.tls import Credentials, TlsFolder

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient
from driver.campaign.job_runner import JobRunner
from driver.farm.device_messages import Order, RunEnded
from driver.farm.farms import RemoteFarm
from driver.farm.leases import Leases
from driver.farm.signing import signer
from driver.processes import descendants

_END_SECONDS: Final = 60.0
CLI: Final = (sys.executable, "-m", "driver.cli")
"""The words that a user's `tilefarm` stands for."""


class Served:
    """A server in a process of its own, from its `ready …` line on.

    Its log goes to a file that every later life of it goes on with.
    """

    def __init__(
        self,
        words: Sequence[str],
        log: Path,
        environment: Mapping[str, str],
        *,
        program: Sequence[str] = CLI,
    ) -> None:
        self._log = log
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*program, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
                env={**os.environ, **environment},
            )
        self.was_killed = False
        assert self._process.stdout is not None
        said = self._process.stdout.readline().split()
        self.address = said[1] if said[:1] == ["ready"] else ""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def code(self) -> int | None:
        """How it ended: its exit code, or a signal's number below 0; None while it lives."""
        return self._process.poll()

    def below(self) -> list[int]:
        """Processes that it started."""
        return descendants(self.pid)

    @property
    def computes(self) -> bool:
        """Whether a process that it started runs a kernel; an idle device has processes too."""
        return any(map(computing, self.below()))

    def kill(self) -> None:
        """What `kill -9` does, to this process alone."""
        self.was_killed = True
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """Stop it from running; it stays there."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it run again."""
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> int:
        """Ask it to end; its exit code."""
        self.thaw()
        self._process.terminate()
        return self._process.wait(_END_SECONDS)

    def close(self) -> None:
        """Nothing of it is left."""
        below = self.below() if self.alive else []
        self.kill()
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def said(self, words: str) -> int:
        """How many lines of its log, of all of its lives, have these words."""
        lines = self._log.read_text(errors="replace").splitlines()
        return sum(words in line for line in lines)


class RealFarm(Closing):
    """Starts trackers and devices that share one secret; a context manager that ends them all.

    Args:
        folder: for the secret, the servers' own folders, and their logs.
        tls: all have certificates.

    Attributes:
        environment: of the servers that are started from now on, on top of ours.
        program: that they are.
    """

    def __init__(self, folder: Path, *, tls: bool = False) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}
        self.program: Sequence[str] = CLI
        self.token_file = folder / "farm.token"
        token = create_token(self.token_file)
        self._parties = Parties(folder / "pki") if tls else None
        shown = TlsFolder(self.tls_of(FarmRole.ADMIN, "admin")) if tls else None
        self.credentials = Credentials(token=token, tls=shown)
        self.target = TARGETS["sim"]
        self._stack = ExitStack()

    def close(self) -> None:
        self._stack.close()

    def tracker(self, *words: str, listen: str = "127.0.0.1:0") -> Served:
        """A tracker that goes on from what an earlier one knew."""
        state = self.folder / "tracker.sqlite"
        served = ["tracker", "--listen", listen, "--state", str(state)]
        return self._serve(FarmRole.TRACKER, "tracker", *served, *words)

    def device(
        self, tracker: str, *words: str, name: str = "sim0", listen: str = "127.0.0.1:0"
    ) -> Served:
        """A simulated device with the real runner, in the same folder in all of its lives."""
        folder = ["--folder", str(self.folder / name)]
        served = ["device", "--name", name, "--tracker", tracker, "--listen", listen]
        return self._serve(FarmRole.DEVICE, name, *served, *folder, *words)

    def ask(self, tracker: str, *, ids: IdSource | None = None) -> TrackerClient:
        """A client of a tracker, closed at the end."""
        client = TrackerClient(tracker, self.credentials, ids=ids)
        self._stack.callback(client.close)
        return client

    def lease(self, client: TrackerClient, *, wait_seconds: float = 60.0) -> Lease:
        """A device of the farm."""
        lease = client.acquire(self.target.digest, wait_seconds=wait_seconds, owner="test")
        assert lease is not None, f"no device within {wait_seconds} s"
        return lease

    def use(self, lease: Lease) -> DeviceClient:
        """A client of a leased device, closed at the end."""
        client = DeviceClient(lease, self.credentials, sign=signer(self.credentials.signing_key))
        self._stack.callback(client.close)
        return client

    def leases(self, tracker: str, through: Mapping[str, Proxy] | None = None) -> ProxiedLeases:
        """What a driver holds of this farm; closed at the end. `through`: see ProxiedLeases."""
        leases = ProxiedLeases(RemoteFarm(tracker, self.credentials), self.target, owner="test")
        leases.through = {name: proxy.address for name, proxy in (through or {}).items()}
        self._stack.callback(leases.close)
        return leases

    def begin(self, leases: Leases, job: RunJob, *, devices: int = 1) -> Future[RunEnded]:
        """Have a job run as a search would, again where a device is lost; gives its end."""
        runner = JobRunner(leases, devices=devices, wait_seconds=30.0, clock=SystemClock())
        order = Order(number=1, job=job, blobs=blobs(), request_id="run")
        thread = ThreadPoolExecutor(1)
        self._stack.callback(thread.shutdown)
        return thread.submit(lambda: runner.run([order])[0])

    def tls_of(self, role: FarmRole, name: str) -> Path:
        """A folder with a certificate of somebody; the same one for the same name."""
        assert self._parties is not None, "this farm has no certificates"
        folder = self.folder / "pki" / name
        return folder if folder.exists() else self._parties.issue(role, name)

    def rotate(self, role: FarmRole, name: str) -> None:
        """Give somebody who has a certificate another one."""
        assert self._parties is not None, "this farm has no certificates"
        self._parties.issue(role, name, out=self.tls_of(role, name))

    def proof_of(self, role: FarmRole, name: str) -> list[str]:
        """The options with which a command shows who it is for."""
        secret = ["--token-file", str(self.token_file)]
        return secret if self._parties is None else [*secret, "--tls", str(self.tls_of(role, name))]

    def _serve(self, role: FarmRole, name: str, *words: str) -> Served:
        proof = self.proof_of(role, name)
        log = self.folder / f"{name}.log"
        served = Served([*words, *proof], log, self.environment, program=self.program)
        self._stack.callback(served.close)
        return served


def gone(pids: Sequence[int], *, seconds: float = 60.0) -> bool:
    """Whether none of these processes lives any more, after they had a moment to end."""
    deadline = time.monotonic() + seconds
    while any(map(lives, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(lives, pids))
