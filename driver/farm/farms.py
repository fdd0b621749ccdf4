"""Where a run's devices are: a farm that somebody serves, or ones that are started here."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final, Protocol

from tilefarm.errors import InfraError, NoDeviceError
from tilefarm.sandbox import SandboxLevel
from tilefarm.target import Target
from tilefarm.threads import Breakage, start_thread
from tilefarm.trust.credentials import create_token
from tilefarm.trust.tls import Credentials
from tilefarm.watch.log import PLAIN, LogStyle

from driver.farm.children import Child

_RESTARTS: Final = 3
_WATCH_SECONDS: Final = 0.5


class Farm(Protocol):
    """Where a tracker is."""

    @property
    def credentials(self) -> Credentials: ...

    def tracker(self, wait_seconds: float) -> str:
        """Its address `host:port`, once it serves.

        Raises:
            InfraError: it does not serve within that time.
            NoDeviceError: it never will.
        """
        ...

    def check(self) -> None:
        """Nothing while devices may still come.

        Raises:
            NoDeviceError: none will.
        """
        ...

    @property
    def pids(self) -> tuple[int, ...]:
        """The living processes that were started for it."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


class RemoteFarm:
    """A farm that somebody serves."""

    def __init__(self, address: str, credentials: Credentials) -> None:
        self._address = address
        self._credentials = credentials

    @property
    def credentials(self) -> Credentials:
        return self._credentials

    def tracker(self, wait_seconds: float) -> str:  # noqa: ARG002
        """The address it was given."""
        return self._address

    def check(self) -> None:
        """Nothing: somebody may start a device at any time."""

    @property
    def pids(self) -> tuple[int, ...]:
        """None."""
        return ()

    def close(self) -> None:
        """Nothing: it is not ours."""


class LocalFarm:
    """A tracker and devices on loopback, simulated ones as a rule, as processes of our own.

    They are called sim0, sim1 and so on, those of a processor cpu0, cpu1.

    A thread starts them, starts again what died, a few times, and ends them.

    Args:
        target: what the devices implement; written to a file for them.
        devices: how many.
        folder: for token and uploads; the owner's alone.
        log: folder for what they print.
        style: of what they log.
        runtime: the VTA library that they load; None: the simulator.
    """

    def __init__(
        self,
        target: Target,
        devices: int,
        folder: Path,
        log: Path,
        *,
        style: LogStyle = PLAIN,
        runtime: Path | None = None,
    ) -> None:
        self._runtime = () if runtime is None else ("--runtime", str(runtime))
        self._kind = "sim" if target.has_accelerator else "cpu"
        self._log = log
        self._style = style
        self._devices = devices
        self._folder = folder
        self._token_file = folder / "token"
        self._credentials = Credentials(token=create_token(self._token_file))
        self._target_file = folder / "target.json"
        self._target_file.write_text(target.to_json())
        self._address = ""
        self._hopeless = ""
        self._serving = threading.Event()
        self._closing = threading.Event()
        self._children: list[Child] = []
        self._restarts = 0
        self._broken = Breakage()
        self._thread = start_thread(self._run, name="farm", broken=self._break)

    @property
    def credentials(self) -> Credentials:
        return self._credentials

    def tracker(self, wait_seconds: float) -> str:
        self._serving.wait(wait_seconds)
        self.check()
        if not self._address:
            raise InfraError(f"the tracker did not start within {wait_seconds:.3g} s")
        return self._address

    def check(self) -> None:
        self._broken.check()
        if self._hopeless:
            raise NoDeviceError(self._hopeless, f"read {self._log}, or `tilefarm doctor`")

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(child.pid for child in self._children if child.alive)

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._serve()
        except InfraError as failure:
            self._hopeless = failure.what
            self._serving.set()
            self._closing.wait()
        finally:
            for child in reversed(self._children):
                child.terminate()
            for child in reversed(self._children):
                child.join()

    def _break(self, error: Exception) -> None:
        self._broken(error)
        self._serving.set()

    def _serve(self) -> None:
        tracker = self._start_tracker("127.0.0.1:0")
        self._address = tracker.ready()
        self._serving.set()
        devices = [self._start_device(f"{self._kind}{n}") for n in range(self._devices)]
        while not self._closing.wait(_WATCH_SECONDS):
            if not tracker.alive:
                tracker = self._restart_tracker()
            devices = [d if d.alive else self._restart(d) for d in devices]
            if not any(d.alive for d in devices):
                self._hopeless = f"no device of this run stays up: {devices[0].last_words()}"

    def _start_device(self, name: str) -> Child:
        return self._start(
            name,
            "device",
            "--name",
            name,
            "--tracker",
            self._address,
            "--target",
            str(self._target_file),
            "--folder",
            str(self._folder / name),
            "--require-sandbox",
            SandboxLevel.NONE,  # the kernels are those of who starts it
            *self._runtime,
        )

    def _restart_tracker(self) -> Child:
        """Another one at the same address, which knows the devices and leases of the first."""
        if self._restarts >= _RESTARTS:
            raise InfraError("the tracker of this run does not stay up")
        self._restarts += 1
        tracker = self._start_tracker(self._address)
        tracker.ready()
        return tracker

    def _start_tracker(self, listen: str) -> Child:
        state = str(self._folder / "tracker.sqlite")
        return self._start("tracker", "tracker", "--listen", listen, "--state", state)

    def _restart(self, dead: Child) -> Child:
        if self._restarts >= _RESTARTS:
            return dead
        self._restarts += 1
        return self._start_device(dead.name)

    def _start(self, name: str, *words: str) -> Child:
        log = self._log / f"{name}.log"
        shared = ("--token-file", str(self._token_file), *self._style.words)
        child = Child(name, [*words, *shared], log)
        self._children.append(child)
        return child
