"""The options that say where kernels are compiled and run, and the record that they make."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from tilefarm.command_line import whole_from
from tilefarm.errors import TargetError
from tilefarm.processors import THREADS
from tilefarm.server_options import add_label_option, add_sandbox_option
from tilefarm.target import load_target

from driver.farm.settings import FarmSettings


def add_farm_options(parser: argparse.ArgumentParser, *, ray: bool = True) -> None:
    """The options of `FarmSettings`; without `ray` but those that say which Ray."""
    default = FarmSettings()
    option = parser.add_argument_group("compiling").add_argument
    option(
        "--target",
        metavar="NAME|FILE.json",
        help="what to compile for: an accelerator, or cpu (default: sim)",
    )
    option(
        "--threads",
        type=whole_from(1),
        metavar="N",
        help="cores of a processor that compute together; cpu@N is such a target by name"
        " (default: 1)",
    )
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
    option = add_tracker_options(parser, "use a running farm, not devices that are started here")
    option(
        "--devices",
        type=int,
        metavar="N",
        help=f"devices (default: {default.devices}, or 1 where it is this processor)",
    )
    option(
        "--runtime",
        type=Path,
        metavar="LIB|stand-in",
        help="the devices here load this VTA library (default: the simulator);"
        " see `tilefarm device --help`",
    )
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


def add_tracker_options(
    parser: argparse.ArgumentParser, what: str = "the farm to ask"
) -> Callable[..., object]:
    """Those that say which farm, and who asks it; others of the group may follow."""
    option = parser.add_argument_group("farm").add_argument
    option("--tracker", metavar="HOST:PORT", help=what)
    option(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="your token, or the farm's secret (with --tracker)",
    )
    option("--tls", type=Path, metavar="DIR", help="your certificates (with --tracker)")
    return option


def farm_settings(args: argparse.Namespace) -> FarmSettings:
    """The record that the options say; an option that was not given keeps its default.

    Raises:
        SettingsError: an option is impossible.
    """
    fields = given(args, FarmSettings)
    if (threads := getattr(args, "threads", None)) is not None:
        fields["target"] = f"{fields.get('target', FarmSettings().target)}{THREADS}{threads}"
    if "devices" not in fields and _is_this_processor(fields):
        fields["devices"] = 1
    return FarmSettings(**fields)


def _is_this_processor(fields: dict[str, Any]) -> bool:
    """Whether devices are the processor here: of two, each would slow down what the other times."""
    try:
        target = load_target(fields.get("target", FarmSettings().target))
    except TargetError:
        return False  # whoever needs the target says what is wrong with it
    return "tracker" not in fields and not target.has_accelerator


def given(args: argparse.Namespace, kind: type) -> dict[str, Any]:
    """The fields of `kind` that were given on the command line."""
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in vars(args).items()}
    names = [f.name for f in fields(kind) if options.get(f.name) is not None]
    return {name: options[name] for name in names}
