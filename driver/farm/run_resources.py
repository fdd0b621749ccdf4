"""Where a run's work is done: compile workers and leased devices, opened and closed together."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tilefarm.clock import Clock
from tilefarm.closing import Closing
from tilefarm.errors import InfraError
from tilefarm.plural import plural
from tilefarm.target import Target
from tilefarm.trust.credentials import credentials
from tilefarm.watch.log import PLAIN, LogStyle

from compile_worker.plugins.passes import default_trace
from driver.farm.compiling.executor import Executor, Workers
from driver.farm.compiling.isolated_retry import ISOLATED_NBYTES
from driver.farm.compiling.ray_worker import RayHost, RayWhenUp, RayWorker
from driver.farm.compiling.reproducers import Reproducers
from driver.farm.compiling.worker import ProcessWorker, Worker
from driver.farm.farms import Farm, LocalFarm, RemoteFarm
from driver.farm.lease_file import HeldLeases
from driver.farm.leases import Leases
from driver.farm.settings import FarmSettings
from driver.farm.signing import signer
from driver.targets import require_playable


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Scratch for secrets, sockets and uploads; log for what processes print.

    Compiles that crashed or hung are put into `kept`; None: they are not kept. `leases` remembers
    the run's leases; None: they run out by themselves if it is killed.
    """

    scratch: Path
    log: Path
    kept: Path | None = None
    leases: Path | None = None


class RunResources(Closing):
    """Starts Ray, tracker and devices at once, in the background; ends them all.

    A context manager.

    Raises:
        TargetError: without a tracker, when this machine cannot simulate the target.
        SettingsError: this machine has no room for so many compile processes.
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
        style: LogStyle = PLAIN,
    ) -> None:
        if settings.tracker is None:
            require_playable(target)
        if compile_workers and settings.ray_address is None:
            settings.require_room_for_workers()
        self._settings = settings
        self._style = style
        self._clock = clock
        self._owned = ExitStack()
        try:
            self._ray = self._start_ray(folders) if compile_workers else None
            self.farm = self._farm_of(target, folders)
            self._owned.callback(self.farm.close)
            self.leases = Leases(
                self.farm,
                target,
                owner=owner,
                labels=settings.wanted_labels,
                priority=settings.priority,
                held=HeldLeases(folders.leases),
                clock=clock,
            )
            self._owned.callback(self.leases.close)
            self._folders = folders
            self._compiles = compile_workers
            if self._ray is None or not self._ray.cluster:
                assert self.executor  # so that they start while the network is read
        except BaseException:
            self._owned.close()
            raise

    def close(self) -> None:
        self._owned.close()

    @cached_property
    def executor(self) -> Executor:
        """The compile workers; those of a cluster once it is joined.

        Raises:
            TilefarmError: it cannot be joined.
        """
        kept = self._folders.kept
        workers = Workers(
            self._workers() if self._compiles else [],
            self._alone,
            timeout_seconds=self._settings.compile_timeout_seconds,
            kept=None if kept is None else Reproducers(kept),
            clock=self._clock,
        )
        self._owned.callback(workers.close)
        return workers

    @property
    def workers(self) -> int:
        """How many compile at once; a cluster says it once it is joined, unless the user does.

        Raises:
            TilefarmError: it cannot be joined.
        """
        if self._ray is None or not self._ray.cluster:
            return self._settings.processes
        self._ray.wait()
        return len(self._ray.pipes)

    @property
    def compiled_on(self) -> str:
        """Where kernels are compiled, in words."""
        processes = plural(self._settings.processes, "process", "processes")
        if self._ray is None:
            return processes
        try:
            up = self._ray.wait(0)
        except InfraError as error:
            return f"{processes}, because {error.what}"
        workers = plural(self.workers, "worker") if up else ""
        return f"Ray, {workers}" if up else "a process while Ray started"

    @property
    def waits_for(self) -> str:
        """What compiling waits for besides its own work, in words; empty if for nothing."""
        return "" if self._ray is None else self._ray.waits_for

    def _start_ray(self, folders: Folders) -> RayHost | None:
        if not self._settings.ray:
            return None
        settings = self._settings
        host = RayHost(
            folders.scratch,
            settings.workers if settings.ray_address else settings.processes,
            folders.log / "ray.log",
            cluster=self._settings.ray_address or "",
            token=self._settings.ray_token,
            with_plugins=bool(default_trace().steps),
            style=self._style,
            clock=self._clock,
        )
        self._owned.callback(host.close)
        return host

    def _farm_of(self, target: Target, folders: Folders) -> Farm:
        settings = self._settings
        if settings.tracker is not None:
            assert settings.token_file is not None
            shown = credentials(settings.token_file, settings.tls, settings.signing_key)
            signer(shown.signing_key)  # one that cannot sign is told before anything starts
            return RemoteFarm(settings.tracker, shown)
        return LocalFarm(
            target,
            settings.devices,
            folders.scratch,
            folders.log,
            style=self._style,
            runtime=settings.runtime,
        )

    def _alone(self, trail: Path | None) -> Worker:
        """Where a job that failed badly is compiled by itself: here, where its end can be seen."""
        return ProcessWorker(
            self._folders.log / "compile.log",
            self._folders.scratch,
            memory_nbytes=ISOLATED_NBYTES,
            trail=trail,
            style=self._style,
        )

    def _workers(self) -> list[Worker]:
        log, scratch = self._folders.log / "compile.log", self._folders.scratch
        count = self.workers
        if self._ray is None:
            return [ProcessWorker(log, scratch, style=self._style) for _ in range(count)]
        if self._ray.cluster:
            return [RayWorker(self._ray, n) for n in range(count)]
        return [RayWhenUp(self._ray, n, log) for n in range(count)]
