"""What one run is asked to do: one frozen record, defaults below options, read once."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from tilefarm.address import check_address
from tilefarm.errors import SettingsError

from tuner import PROPOSERS

DEFAULT_TRIALS: Final = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmSettings:
    """Where kernels are compiled and where they run.

    Attributes:
        target: a built-in target's name or a JSON file.
        devices: how many devices to use; with a `tracker`, at most so many.
        tracker: `host:port` of a farm's tracker; None starts a tracker and simulated devices here.
        token_file: the farm's shared secret, a file that only its owner can read.
        device_wait_seconds: how long to wait for the first device.
        workers: compile processes; 0 means one per core.
        ray: compile on Ray; otherwise in processes of our own.
        compile_timeout_seconds: for one candidate.
        run_timeout_seconds: for one candidate on a device.
    """

    target: str = "sim"
    devices: int = 2
    tracker: str | None = None
    token_file: Path | None = None
    device_wait_seconds: float = 30.0
    workers: int = 0
    ray: bool = True
    compile_timeout_seconds: float = 30.0
    run_timeout_seconds: float = 20.0

    def __post_init__(self) -> None:
        _at_least("--devices", self.devices, 1)
        _at_least("--workers", self.workers, 0)
        _at_least("--device-wait", self.device_wait_seconds, 0)
        _at_least("--compile-timeout", self.compile_timeout_seconds, 0.1)
        _at_least("--run-timeout", self.run_timeout_seconds, 0.1)
        if self.tracker is not None and self.token_file is None:
            raise SettingsError(
                "--tracker needs --token-file",
                "give the file that the tracker was started with",
            )
        if self.tracker is not None:
            check_address(self.tracker)

    @property
    def processes(self) -> int:
        """Compile processes, resolved."""
        return self.workers or os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneSettings:
    """One `tilefarm tune`.

    Attributes:
        model: the ONNX file.
        calibrate: npz of inputs whose ranges decide the quantization.
        evaluate: npz of inputs, and labels if it has them, for the final check; None: the
            calibration data.
        out: the output folder.
        trials: measured candidates over all workloads; earlier sessions' count.
        proposer: a name in `tuner.PROPOSERS`.
        seed: of everything that is random.
    """

    model: Path
    calibrate: Path
    out: Path
    evaluate: Path | None = None
    trials: int = DEFAULT_TRIALS
    proposer: str = "guided"
    seed: int = 0
    farm: FarmSettings = field(default_factory=FarmSettings)

    def __post_init__(self) -> None:
        _at_least("--trials", self.trials, 1)
        _at_least("--seed", self.seed, 0)
        if self.proposer not in PROPOSERS:
            raise SettingsError(
                f"unknown proposer {self.proposer!r}", f"one of {', '.join(PROPOSERS)}"
            )


def add_farm_options(parser: argparse.ArgumentParser) -> None:
    """The options of `FarmSettings`."""
    default = FarmSettings()
    farm = parser.add_argument_group("farm")
    option = farm.add_argument
    option("--target", metavar="NAME|FILE.json", help="the accelerator (default: sim)")
    option("--devices", type=int, metavar="N", help=f"devices (default: {default.devices})")
    option("--tracker", metavar="HOST:PORT", help="use a running farm, not simulated devices here")
    option("--token-file", type=Path, metavar="FILE", help="the farm's secret (with --tracker)")
    option(
        "--device-wait",
        type=float,
        dest="device_wait_seconds",
        metavar="S",
        help=f"seconds to wait for a device (default: {default.device_wait_seconds:g})",
    )
    option("--workers", type=int, metavar="N", help="compile processes (default: one per core)")
    option("--no-ray", action="store_false", dest="ray", default=None, help="compile without Ray")
    option(
        "--compile-timeout",
        type=float,
        dest="compile_timeout_seconds",
        metavar="S",
        help=f"seconds for one candidate (default: {default.compile_timeout_seconds:g})",
    )
    option(
        "--run-timeout",
        type=float,
        dest="run_timeout_seconds",
        metavar="S",
        help=f"seconds for one candidate on a device (default: {default.run_timeout_seconds:g})",
    )


def farm_settings(args: argparse.Namespace) -> FarmSettings:
    """The record that the options say; an option that was not given keeps its default.

    Raises:
        SettingsError: an option is impossible.
    """
    return FarmSettings(**given(args, FarmSettings))


def given(args: argparse.Namespace, kind: type) -> dict[str, Any]:
    """The fields of `kind` that were given on the command line."""
    options = vars(args)
    names = [f.name for f in fields(kind) if options.get(f.name) is not None]
    return {name: options[name] for name in names}


def _at_least(option: str, value: float, bound: float) -> None:
    if not value >= bound:
        raise SettingsError(
            f"{option} {value:g}: must be at least {bound:g}", f"{option} {max(bound, 1):g}"
        )
