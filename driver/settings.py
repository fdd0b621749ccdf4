"""What one run is asked to do: one frozen record, defaults below options, read once."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tilefarm.address import check_address, is_loopback
from tilefarm.command_line import MOST_SECONDS
from tilefarm.errors import SettingsError
from tilefarm.plural import plural
from tilefarm.sandbox import SANDBOX_LABEL, SandboxLevel
from tilefarm.server_options import add_label_option, add_sandbox_option
from tilefarm.watch.operations import UNWATCHED, Operations

from driver.accuracy.kinds import Kind, check_kind
from driver.accuracy.promise import Promise
from driver.compiling.cluster import MOST_WORKERS
from driver.quantize.options import AS_USUAL, DATA_NEEDED, Quantization
from tuner import PROPOSERS

if TYPE_CHECKING:
    from driver.frontend.extents import Extents

DEFAULT_TRIALS: Final = 240
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
        _at_least("--devices", self.devices, 1)
        _at_least("--workers", self.workers, 0)
        if self.workers > MOST_WORKERS:
            raise SettingsError(
                f"--workers {self.workers}: more than {MOST_WORKERS}",
                "leave it out for one per core, or per CPU of a cluster",
            )
        _wait_from("--device-wait", self.device_wait_seconds, 0)
        _wait_from("--compile-timeout", self.compile_timeout_seconds, 0.1)
        _wait_from("--run-timeout", self.run_timeout_seconds, 0.1)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneSettings:
    """One `tilefarm tune`.

    Attributes:
        model: the ONNX file.
        calibrate: npz of inputs whose ranges decide the quantization; None for a quantized model
            that gives them all itself.
        extents: of inputs and dimensions that the model leaves open.
        quantization: how the network becomes integers.
        evaluate: npz of inputs, and labels if it has them, for the final check; None: the
            calibration data, or seeded random inputs where there are none.
        max_loss: points of accuracy that the integers may lose; None: the default is only judged.
        judge: what the network answers, a word of `driver.accuracy.KINDS`; None: as shapes say.
        out: the output folder.
        trials: measured candidates over all workloads; earlier sessions' count.
        proposer: a name in `tuner.PROPOSERS`.
        seed: of everything that is random.
        lookahead: candidates that are out at most, proposed and not ended; None: as the folder was
            searched before, or the tuner's usual number.
        operations: how the run's processes are watched.
    """

    model: Path
    out: Path
    calibrate: Path | None = None
    extents: Extents = field(default_factory=dict)
    quantization: Quantization = AS_USUAL
    evaluate: Path | None = None
    judge: Kind | None = None
    max_loss: float | None = None
    trials: int = DEFAULT_TRIALS
    proposer: str = "guided"
    seed: int = 0
    lookahead: int | None = None
    farm: FarmSettings = field(default_factory=FarmSettings)
    operations: Operations = UNWATCHED

    def __post_init__(self) -> None:
        _at_least("--trials", self.trials, 1)
        _at_least("--seed", self.seed, 0)
        if self.judge is not None:
            check_kind(self.judge)
        if self.lookahead is not None:
            _at_least("--lookahead", self.lookahead, 1)
        _ = self.promise
        metrics = self.operations.metrics
        if metrics is not None and not is_loopback(metrics):
            raise SettingsError(
                f"--metrics {metrics}: a run's numbers are read on its own machine",
                "127.0.0.1:9464, and a Prometheus or its agent there",
            )
        if self.calibrate is None and self.quantization.needs_data:
            raise SettingsError(
                f"{DATA_NEEDED} --calibrate DATA.npz", "give data, or leave them out"
            )
        if self.proposer not in PROPOSERS:
            raise SettingsError(
                f"unknown proposer {self.proposer!r}", f"one of {', '.join(PROPOSERS)}"
            )

    @property
    def promise(self) -> Promise:
        """What the integers may lose."""
        return Promise() if self.max_loss is None else Promise(points=self.max_loss, is_said=True)


def add_farm_options(parser: argparse.ArgumentParser, *, ray: bool = True) -> None:
    """The options of `FarmSettings`; without `ray` but those that say which Ray."""
    default = FarmSettings()
    option = parser.add_argument_group("compiling").add_argument
    option("--target", metavar="NAME|FILE.json", help="the accelerator (default: sim)")
    option(
        "--workers",
        type=int,
        metavar="N",
        help="compile processes (default: one per core, with --ray per CPU of the cluster)",
    )
    if ray:
        _add_ray_options(option)
    option(
        "--compile-timeout",
        type=float,
        dest="compile_timeout_seconds",
        metavar="S",
        help="seconds of processor time for one candidate"
        f" (default: {default.compile_timeout_seconds:g})",
    )
    add_device_options(parser, "candidate")


def _add_ray_options(option: Callable[..., object]) -> None:
    option("--no-ray", action="store_false", dest="ray", default=None, help="compile without Ray")
    option(
        "--ray",
        dest="ray_address",
        metavar="HOST:PORT",
        help="compile on the Ray cluster that this machine is a node of; auto finds it",
    )
    option("--ray-token", type=Path, metavar="FILE", help="the cluster's token (with --ray)")


def add_device_options(parser: argparse.ArgumentParser, what: str) -> None:
    """Those of `FarmSettings` that say where each `what` is run, and for how long at most."""
    default = FarmSettings()
    option = parser.add_argument_group("farm").add_argument
    option("--devices", type=int, metavar="N", help=f"devices (default: {default.devices})")
    option("--tracker", metavar="HOST:PORT", help="use a running farm, not simulated devices here")
    option(
        "--runtime",
        type=Path,
        metavar="LIB|stand-in",
        help="the devices here load this VTA library (default: the simulator);"
        " see `tilefarm device --help`",
    )
    option("--token-file", type=Path, metavar="FILE", help="the farm's secret (with --tracker)")
    option("--tls", type=Path, metavar="DIR", help="your certificates (with --tracker)")
    option("--signing-key", type=Path, metavar="FILE", help="the farm's key (with --tracker)")
    add_label_option(option, "wanted of a device (with --tracker)")
    add_sandbox_option(
        option, "take no device that confines kernels less: none, seccomp or landlock"
    )
    option("--priority", type=int, metavar="N", help="among those who wait (default: 0)")
    option(
        "--device-wait",
        type=float,
        dest="device_wait_seconds",
        metavar="S",
        help=f"seconds to wait for a device (default: {default.device_wait_seconds:g})",
    )
    option(
        "--run-timeout",
        type=float,
        dest="run_timeout_seconds",
        metavar="S",
        help=f"seconds for one {what} on a device (default: {default.run_timeout_seconds:g})",
    )


def add_tracker_options(parser: argparse.ArgumentParser) -> None:
    """Those of a command that asks a tracker."""
    option = parser.add_argument_group("farm").add_argument
    option("--tracker", metavar="HOST:PORT")
    option("--token-file", type=Path, metavar="FILE", help="your token, or the farm's secret")
    option("--tls", type=Path, metavar="DIR", help="your certificates")


def farm_settings(args: argparse.Namespace) -> FarmSettings:
    """The record that the options say; an option that was not given keeps its default.

    Raises:
        SettingsError: an option is impossible.
    """
    return FarmSettings(**given(args, FarmSettings))


def given(args: argparse.Namespace, kind: type) -> dict[str, Any]:
    """The fields of `kind` that were given on the command line."""
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in vars(args).items()}
    names = [f.name for f in fields(kind) if options.get(f.name) is not None]
    return {name: options[name] for name in names}


def _at_least(option: str, value: float, bound: float) -> None:
    if not value >= bound:
        raise SettingsError(
            f"{option} {value:g}: must be at least {bound:g}", f"{option} {max(bound, 1):g}"
        )


def _wait_from(option: str, seconds: float, least: float) -> None:
    if not least <= seconds <= MOST_SECONDS:
        raise SettingsError(
            f"{option} {seconds:g}: must be from {least:g} to {MOST_SECONDS:g} seconds",
            f"{option} {max(least, 1):g}",
        )
