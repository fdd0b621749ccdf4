"""Processes that serve many devices each: real device servers, whose kernels sleep."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from tilefarm.clock import SystemClock
from tilefarm.closing import Closing
from tilefarm.errors import InfraError
from tilefarm.measurement import Counters
from tilefarm.rpc.security import Security
from tilefarm.target import TARGETS
from tilefarm.trust.access import FarmRole
from tilefarm.trust.tokens import SharedSecret

from device_server.device.known_kernel import known_kernel
from device_server.device.server import run_device
from device_server.device.settings import DeviceSettings
from driver.benchmarks.farm.asleep import SleepingRunner
from driver.benchmarks.farm.proofs import Proofs
from driver.farm.authority import Authority
from driver.farm.compiling.pipes import PipeChild, far_ends

TARGET: Final = TARGETS["sim"]
"""What the devices implement."""

_CHILD: Final = "driver.benchmarks.farm.devices"
_PER_PROCESS: Final = 250
_START_SECONDS: Final = 60.0
_TLS: Final = "tls"
_READY: Final = "ready"
_REGISTERED: Final = "registered"


class SleepingDevices(Closing):
    """Some processes that serve `count` devices together; a context manager.

    Args:
        tracker: where the devices register; nobody needs to be there yet.
        proofs: what they prove themselves with.
        folder: for uploads and sockets; its path is short.
        log: gets what the processes print.

    Raises:
        InfraError: they did not start.
    """

    def __init__(
        self,
        count: int,
        *,
        tracker: str,
        proofs: Proofs,
        kernel_seconds: float,
        folder: Path,
        log: Path,
    ) -> None:
        for name in _names(0, count):
            proofs.tls(FarmRole.DEVICE, name)
        shown = str(proofs.folder), "plain" if proofs.authority is None else _TLS
        self._children = [
            PipeChild(
                _CHILD,
                [str(first), str(last), tracker, *shown, str(folder), str(kernel_seconds)],
                pipes=1,
                log=log,
            )
            for first, last in _shares(count)
        ]
        try:
            self._wait_for(_READY, _START_SECONDS)
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        return [child.pid for child in self._children]

    def wait_until_registered(self, seconds: float) -> None:
        """Until each has registered once.

        Raises:
            InfraError: that took longer.
        """
        self._wait_for(_REGISTERED, seconds)

    def close(self) -> None:
        """End them all."""
        for child in self._children:
            child.kill()
        for child in self._children:
            child.close()

    def _wait_for(self, word: str, seconds: float) -> None:
        for child in self._children:
            try:
                heard = child.pipes[0].recv() if child.pipes[0].poll(seconds) else "nothing"
            except EOFError:
                heard = f"nothing more, exit code {child.close()}"
            if heard != word:
                raise InfraError(
                    f"a process of simulated devices said {heard} instead of {word!r}"
                    f" within {seconds:g} s"
                )


def _shares(count: int) -> list[tuple[int, int]]:
    """The numbers [first, last) of the devices of each process."""
    return [(at, min(at + _PER_PROCESS, count)) for at in range(0, count, _PER_PROCESS)]


def _names(first: int, last: int) -> list[str]:
    return [f"d{number}" for number in range(first, last)]


def main(
    argument: str,
    first: str,
    last: str,
    tracker: str,
    proofs: str,
    transport: str,
    folder: str,
    kernel_seconds: str,
) -> None:
    """The child: serves devices until the other end of its pipe is gone."""
    (pipe,) = far_ends(argument)
    authority = Authority(Path(proofs)) if transport == _TLS else None
    issued = Proofs(Path(proofs), authority, SystemClock())
    names = _names(int(first), int(last))
    asyncio.run(_serve(names, pipe, tracker, issued, Path(folder), float(kernel_seconds)))


async def _serve(
    names: list[str],
    pipe: Connection,
    tracker: str,
    proofs: Proofs,
    folder: Path,
    kernel_seconds: float,
) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.remove_reader(pipe.fileno())
        stopping.set()

    loop.add_reader(pipe.fileno(), stop)
    ready = _Roll(names, lambda: pipe.send(_READY))
    registered = _Roll(names, lambda: pipe.send(_REGISTERED))

    def log(event: str, **fields: object) -> None:
        if event == _REGISTERED:
            registered.answer(str(fields["device"]))

    # What sleeps counts nothing but cycles, as many as it likes.
    known = replace(known_kernel(TARGET, b""), counters=Counters(), cycles=None)

    def device(name: str) -> Coroutine[None, None, None]:
        shown = proofs.shown(FarmRole.DEVICE, name)
        return run_device(
            stopping,
            DeviceSettings(
                name=name,
                target=TARGET,
                folder=folder / name,
                tracker=tracker,
                listen=f"unix:{folder}/{name}.sock",
            ),
            SleepingRunner(name, kernel_seconds),
            known,
            security=Security(tokens=SharedSecret(shown.token), tls=shown.tls),
            credentials=shown,
            on_ready=lambda _: ready.answer(name),
            log=log,
        )

    await asyncio.gather(*map(device, names))


class _Roll:
    """Says so once all who are on it have answered."""

    def __init__(self, names: Iterable[str], say: Callable[[], None]) -> None:
        self._missing = set(names)
        self._say = say

    def answer(self, name: str) -> None:
        if name in self._missing:
            self._missing.remove(name)
            if not self._missing:
                self._say()


if __name__ == "__main__":
    main(*sys.argv[1:])
