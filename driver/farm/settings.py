"""Where a run compiles and measures, as its user decides: one frozen record."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.address import check_address
from tilefarm.errors import SettingsError
from tilefarm.plural import plural
from tilefarm.sandbox import SANDBOX_LABEL, SandboxLevel

from driver.farm.compiling.cluster import MOST_WORKERS
from driver.settings import at_least, wait_from

_PRIORITIES: Final = 100
_WORKERS_PER_CORE: Final = 32
"""Processes of our own: a worker holds some hundred megabytes, and more of them are no faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmSettings:
    """Where kernels are compiled and where they run.

    Attributes:
        target: a built-in target's name or a JSON file.
        devices: how many devices to use; with a `tracker`, at most so many.
        tracker: `host:port` of a farm's tracker; None starts a tracker and devices here.
        runtime: the VTA library of devices that are started here, or "stand-in"; None: the
            simulator.
        token_file: the user's or the farm's secret, a file that only its owner can read.
        tls: the user's certificates, a folder; None for a farm without TLS.
        signing_key: the farm's, a file; devices with one run signed artifacts only.
        labels: that a device must have, of those that it registered with.
        require_sandbox: how strongly a device must confine kernels; None: as its owner chose.
        priority: among those who wait for devices; higher ones are served first.
        device_wait_seconds: how long to wait for the first device.
        workers: compile processes; 0 means one per core, or per CPU of a Ray cluster.
        ray: compile on Ray; otherwise in processes of our own.
        ray_address: `host:port` of a Ray cluster whose node this machine is, or "auto"; None: a
            cluster of the run's own.
        ray_token: that cluster's, a file; None: as Ray's environment says.
        compile_timeout_seconds: of processor time, or of sleep, for one candidate; a network's
            program has that for each of its kernels.
        run_timeout_seconds: for one candidate on a device.
    """

    target: str = "sim"
    devices: int = 2
    tracker: str | None = None
    runtime: Path | None = None
    token_file: Path | None = None
    tls: Path | None = None
    signing_key: Path | None = None
    labels: tuple[tuple[str, str], ...] = ()
    require_sandbox: SandboxLevel | None = None
    priority: int = 0
    device_wait_seconds: float = 30.0
    workers: int = 0
    ray: bool = True
    ray_address: str | None = None
    ray_token: Path | None = None
    compile_timeout_seconds: float = 30.0
    run_timeout_seconds: float = 20.0

    def __post_init__(self) -> None:
        at_least("--devices", self.devices, 1)
        at_least("--workers", self.workers, 0)
        if self.workers > MOST_WORKERS:
            raise SettingsError(
                f"--workers {self.workers}: more than {MOST_WORKERS}",
                "leave it out for one per core, or per CPU of a cluster",
            )
        wait_from("--device-wait", self.device_wait_seconds, 0)
        wait_from("--compile-timeout", self.compile_timeout_seconds, 0.1)
        wait_from("--run-timeout", self.run_timeout_seconds, 0.1)
        if abs(self.priority) > _PRIORITIES:
            raise SettingsError(
                f"--priority {self.priority}: not within -{_PRIORITIES}..{_PRIORITIES}",
                "0 is everybody's",
            )
        if self.ray_address is not None and not self.ray:
            raise SettingsError("--no-ray and --ray exclude each other", "leave one out")
        if self.ray_address not in (None, "auto"):
            check_address(str(self.ray_address))
        if self.ray_token is not None and self.ray_address is None:
            raise SettingsError("--ray-token is for a cluster", "add --ray HOST:PORT")
        if self.tracker is not None and self.token_file is None:
            raise SettingsError(
                "--tracker needs --token-file",
                "give the file that the tracker was started with",
            )
        if self.tracker is not None and self.runtime is not None:
            raise SettingsError(
                "--runtime is for devices that are started here, and --tracker for others",
                "leave one out",
            )
        if self.tracker is not None:
            check_address(self.tracker)
        else:
            self._require_local()

    def _require_local(self) -> None:
        """Nothing if no option is given that only a farm of others has a use for."""
        useless = {
            "--token-file": self.token_file,
            "--tls": self.tls,
            "--signing-key": self.signing_key,
            "--label": self.labels,
            "--priority": self.priority,
        }
        for option, value in useless.items():
            if value:
                raise SettingsError(
                    f"{option} is for a farm that somebody serves", "add --tracker HOST:PORT"
                )

    @property
    def wanted_labels(self) -> tuple[tuple[str, str], ...]:
        """What a device must have."""
        if self.require_sandbox is None:
            return self.labels
        return (*self.labels, (SANDBOX_LABEL, self.require_sandbox.value))

    @property
    def processes(self) -> int:
        """Compile processes on this machine, resolved."""
        return self.workers or os.cpu_count() or 1

    def require_room_for_workers(self) -> None:
        """Nothing if this machine can have so many compile processes.

        Raises:
            SettingsError: it cannot.
        """
        most = _WORKERS_PER_CORE * (os.cpu_count() or 1)
        if self.workers > most:
            raise SettingsError(
                f"--workers {self.workers}: more than {most} processes on"
                f" {plural(os.cpu_count() or 1, 'core')}",
                "leave it out for one per core; --ray HOST:PORT compiles on a cluster",
            )
