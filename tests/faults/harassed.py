"""A farm and its driver that are in for trouble: servers, proxies, clocks, and who looks after."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from kit.farm.proxy import Proxy
from kit.farm.real_farm import RealFarm, Served
from tilefarm.closing import Closing
from tilefarm.errors import TilefarmError
from tilefarm.trust.access import FarmRole
from tilefarm.trust.tls import TlsFolder

from .guests import Guests
from .sessions import Sessions, resident_nbytes
from .skew import Skew

_TRACKER: Final = "tracker"
_DEVICES: Final = ("sim0", "sim1", "sim2")
_ROUND_SECONDS: Final = 2.0
_DEVICE_WAIT_SECONDS: Final = 120
_TESTS: Final = Path(__file__).resolve().parents[1]


class Harassed(Closing):
    """A tracker, three devices and a driver that tunes, all with TLS, all behind proxies.

    A context manager.

    Attributes:
        servers: by name; dead ones are started again under the same address.
        proxies: "way to NAME" is in front of a server.
        skews: clocks of the servers.
        readmitted: devices that came out of quarantine, as an admin would have them.
        revived: servers that ended by themselves, with their exit codes.
        resident_nbytes: the most memory that a server had.
        unnoticed: devices that were wrong for long, and nobody found out.
        pids: of all servers that ever were.
    """

    def __init__(self, folder: Path, *, seed: int) -> None:
        self.folder = folder
        self.out = folder / "out"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._seed = seed
        self._stack = ExitStack()
        self._real = self._stack.enter_context(RealFarm(folder, tls=True))
        self._real.environment = {"TMPDIR": str(self.temporary)}
        self._real.program = (sys.executable, "-m", "kit.children.lying_device")
        self.skews = {name: Skew(folder / f"{name}.skew") for name in (_TRACKER, *_DEVICES)}
        self.servers: dict[str, Served] = {}
        self.proxies: dict[str, Proxy] = {}
        self.readmitted: list[str] = []
        self.revived: list[tuple[str, int | None]] = []
        self.resident_nbytes: Counter[str] = Counter()
        self.unnoticed: list[str] = []
        self.pids: set[int] = set()
        self._addresses: dict[str, str] = {}
        self._looked_at = 0.0

    def __enter__(self) -> Self:
        for name in (_TRACKER, *_DEVICES):
            self.start(name)
            proxy = self._stack.enter_context(Proxy(self._addresses[name]))
            self.proxies[f"way to {name}"] = proxy
        self._admin = self._real.ask(self._addresses[_TRACKER])
        self.sessions = Sessions(self._words(), self._environment())
        return self

    def close(self) -> None:
        self._stack.close()

    def start(self, name: str) -> None:
        """A server, for the first time or again; somebody has set its clock right."""
        self.skews[name].jump(0)  # with another one it refuses its own certificate
        real, listen = self._real, self._addresses.get(name, "127.0.0.1:0")
        environment = real.environment
        skew = self.skews[name].environment
        path = os.pathsep.join([skew["PYTHONPATH"], str(_TESTS), str(_TESTS.parent)])
        lies = {"LIES": str(self._lies(name)), "SLOW": str(self._slow(name))}
        real.environment = {**environment, **skew, **lies, "PYTHONPATH": path}
        try:
            if name == _TRACKER:
                server = real.tracker(listen=listen)
            else:
                tracker = self.proxies[f"way to {_TRACKER}"].address
                server = real.device(tracker, name=name, listen=listen)
        finally:
            real.environment = environment
        assert server.address, f"{name} did not start: {self.log_of(name)[-2000:]}"
        self.servers[name] = server
        self._addresses[name] = server.address
        self.pids |= {server.pid}

    def look_after(self) -> None:
        """What an admin and systemd do: now and then, put back what is out of service."""
        if time.monotonic() - self._looked_at < _ROUND_SECONDS:
            return
        self._looked_at = time.monotonic()
        for name, server in self.servers.items():
            self.pids |= {*server.below()}
            nbytes = resident_nbytes(server.pid)
            self.resident_nbytes[name] = max(self.resident_nbytes[name], nbytes)
            if not server.alive and not server.was_killed:
                self.revived.append((name, server.code))
                self.start(name)
        with contextlib.suppress(TilefarmError):  # the tracker is away just now
            for state in self._admin.states():
                if state.quarantine:
                    self._lies(state.device.name).unlink(missing_ok=True)  # it is repaired
                    self._admin.readmit(state.device.name)
                    self.readmitted.append(state.device.name)

    def address_of(self, name: str) -> str:
        """Where a server itself is, in all of its lives."""
        return self._addresses[name]

    def rotate(self, name: str) -> None:
        """A server gets another certificate, and goes on."""
        self._real.rotate(FarmRole.TRACKER if name == _TRACKER else FarmRole.DEVICE, name)

    def lie(self, name: str) -> None:
        """A device is wrong from now on, until somebody finds out."""
        self._lies(name).touch()

    def lies(self, name: str) -> bool:
        """Whether a device is wrong, and nobody has found out."""
        return self._lies(name).exists()

    def slow_down(self, name: str) -> None:
        """A device takes long for each run from now on."""
        self._slow(name).touch()

    def speed_up(self, name: str) -> None:
        """It does so no more."""
        self._slow(name).unlink(missing_ok=True)

    def guests(self, count: int) -> Guests:
        """So many clients of this farm, each with a certificate of its own."""
        tls = [self._real.tls_of(FarmRole.SUBMIT, f"guest{number}") for number in range(count)]
        return Guests(
            lambda: self._addresses[_TRACKER],
            self._real.target,
            [replace(self._real.credentials, tls=TlsFolder(folder)) for folder in tls],
            self._seed,
        )

    @property
    def token(self) -> str:
        """The secret of this farm."""
        return self._real.credentials.token

    @property
    def somebody(self) -> TlsFolder:
        """Certificates of somebody of this farm, who may run kernels if they show a token."""
        return TlsFolder(self._real.tls_of(FarmRole.SUBMIT, "somebody"))

    def _slow(self, name: str) -> Path:
        return self.folder / f"{name}.slow"

    def _lies(self, name: str) -> Path:
        return self.folder / f"{name}.lies"

    def log_of(self, name: str) -> str:
        """What all lives of a server have written."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def open_files(self) -> dict[str, int]:
        """How many files each living server has open."""
        alive = {name: server for name, server in self.servers.items() if server.alive}
        return {
            name: len([*Path(f"/proc/{server.pid}/fd").iterdir()]) for name, server in alive.items()
        }

    def _words(self) -> list[str]:
        return [
            *("demo", "--json", "--no-ray", "--workers", "1", "--proposer", "random"),
            *("--seed", str(self._seed), "--out", str(self.out), "--devices", str(len(_DEVICES))),
            *("--device-wait", str(_DEVICE_WAIT_SECONDS)),
            *("--tracker", self.proxies[f"way to {_TRACKER}"].address),
            *self._real.proof_of(FarmRole.SUBMIT, "ann"),
        ]

    def _environment(self) -> dict[str, str]:
        through = {name: self.proxies[f"way to {name}"].address for name in _DEVICES}
        return {"PROXIES": json.dumps(through), "TMPDIR": str(self.temporary)}
