"""Where a run's work is done: compile workers and leased devices, opened and closed together."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tilefarm.clock import Clock
from tilefarm.errors import InfraError
from tilefarm.target import Target

from driver.compiling.executor import Executor, Workers
from driver.compiling.places import Place, ProcessPlace
from driver.compiling.workers import RayHost, RayWhenUp
from driver.farm.fleet import Farm, Leases, LocalFarm, RemoteFarm
from driver.farm.token import read_token
from driver.settings import FarmSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Scratch for secrets, sockets and uploads; log for what processes print."""

    scratch: Path
    log: Path


class Farmhouse:
    """Starts Ray, tracker and devices at once, in the background; ends them all.

    A context manager.
    """

    def __init__(
        self,
        settings: FarmSettings,
        target: Target,
        folders: Folders,
        *,
        owner: str,
        clock: Clock,
        compile_workers: bool = True,
    ) -> None:
        self._settings = settings
        self._owned = ExitStack()
        try:
            self._ray = self._start_ray(folders) if compile_workers else None
            farm = self._farm(target, folders)
            self._owned.callback(farm.close)
            self.leases = Leases(farm, target, owner=owner, clock=clock)
            self._owned.callback(self.leases.close)
            self.executor: Executor = Workers(
                self._places(folders) if compile_workers else [],
                timeout_seconds=settings.compile_timeout_seconds,
                clock=clock,
            )
            self._owned.callback(self.executor.close)
        except BaseException:
            self._owned.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._owned.close()

    @property
    def compiled_on(self) -> str:
        """Where kernels are compiled, in words."""
        processes = f"{self._settings.processes} processes"
        if self._ray is None:
            return processes
        try:
            up = self._ray.wait(0)
        except InfraError as error:
            return f"{processes}, because {error.what}"
        return f"Ray, {self._settings.processes} workers" if up else "a process while Ray started"

    def _start_ray(self, folders: Folders) -> RayHost | None:
        if not self._settings.ray:
            return None
        host = RayHost(folders.scratch, self._settings.processes, folders.log / "ray.log")
        self._owned.callback(host.close)
        return host

    def _farm(self, target: Target, folders: Folders) -> Farm:
        settings = self._settings
        if settings.tracker is not None:
            assert settings.token_file is not None
            return RemoteFarm(settings.tracker, read_token(settings.token_file))
        return LocalFarm(target, settings.devices, folders.scratch, folders.log)

    def _places(self, folders: Folders) -> list[Place]:
        log = folders.log / "compile.log"
        count = self._settings.processes
        if self._ray is None:
            return [ProcessPlace(log, folders.scratch) for _ in range(count)]
        return [RayWhenUp(self._ray, n, log) for n in range(count)]
