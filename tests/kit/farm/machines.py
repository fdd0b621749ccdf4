"""Machines of a network: namespaces of their own, or, where those are not permitted, one."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tilefarm.closing import Closing

from driver.processes import descendants, kill_descendants

_IP = shutil.which("ip") or "/usr/sbin/ip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine; `enter` are the words before a command that runs there."""

    name: str
    address: str
    enter: tuple[str, ...] = ()

    def words(self, words: Sequence[str]) -> list[str]:
        return [*self.enter, *words]


class Machines(Closing):
    """A network of machines; everything that was started on them ends with it.

    Args:
        names: of the machines.
        log: a folder for what their processes say.
    """

    def __init__(self, names: Sequence[str], log: Path) -> None:
        self._names = names
        self._log = log
        self._mine = f"tf{os.getpid()}"
        self._spaces: list[str] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._machines: dict[str, Machine] = {}

    def __enter__(self) -> Self:
        try:
            self._connect()
        except (subprocess.CalledProcessError, OSError):
            self._delete()
            self._machines = {name: Machine(name=name, address="127.0.0.1") for name in self._names}
        return self

    def close(self) -> None:
        for process in reversed(self._processes):
            self.end(process)
        self._delete()

    @property
    def separate(self) -> bool:
        """Whether each has a network of its own."""
        return bool(self._spaces)

    def __getitem__(self, name: str) -> Machine:
        return self._machines[name]

    def start(
        self, name: str, words: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """A process on a machine, in a session of its own."""
        log = self._log / f"{name}-{len(self._processes)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self[name].words(words),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )
        self._processes.append(process)
        return process

    def run(
        self,
        name: str,
        words: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        seconds: float = 120.0,
    ) -> subprocess.CompletedProcess[str]:
        """A command on a machine, ended."""
        return subprocess.run(
            self[name].words(words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            env={**os.environ, **(environment or {})},
            check=False,
        )

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """End a process and all below it at once, as a machine that loses its power."""
        below = descendants(process.pid)
        kill_descendants(process.pid)
        for pid in (process.pid, *below):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def said(self) -> str:
        """The logs of all processes, for a test that fails."""
        return "\n".join(f"-- {p.name}\n{p.read_text()[-3000:]}" for p in self._log.glob("*.log"))

    def _connect(self) -> None:
        """A namespace for a switch and one for each machine, which a cable joins to it."""
        switch = f"{self._mine}sw"
        self._space(switch)
        _ip("-n", switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", switch, "link", "set", "br0", "up")
        for number, name in enumerate(self._names, 1):
            space, cable = f"{self._mine}{name}", f"c{number}"
            address = f"10.213.77.{number}"
            self._space(space)
            _ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", cable, "netns", switch)
            _ip("-n", switch, "link", "set", cable, "master", "br0", "up")
            _ip("-n", space, "address", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "link", "set", "lo", "up")
            _ip("-n", space, "route", "add", "default", "dev", "eth0")
            enter = (_IP, "netns", "exec", space)
            self._machines[name] = Machine(name=name, address=address, enter=enter)

    def _space(self, name: str) -> None:
        _ip("netns", "add", name)
        self._spaces.append(name)

    def _delete(self) -> None:
        for space in self._spaces:
            with contextlib.suppress(subprocess.CalledProcessError, OSError):
                _ip("netns", "delete", space)
        self._spaces.clear()


def _ip(*words: str) -> None:
    subprocess.run([_IP, *words], check=True, capture_output=True, timeout=60)
