"""The subcommands: one file each, imported only when it is wanted."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from typing import Any, Final, Protocol

from tilefarm.command_line import HelpFormatter

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "tune": ("driver.commands.tune", "find the fastest program for a network"),
    "tune-op": ("driver.commands.tune_op", "find the fastest program for operators said in words"),
    "records": (
        "driver.commands.records",
        "keep the schedules that runs have found, for later ones",
    ),
    "nightly": ("driver.commands.nightly", "measure a whole zoo, night after night"),
    "bisect": ("driver.commands.bisect", "find the commit that made a row of the zoo slower"),
    "history": ("driver.commands.history", "keep what nights have measured of a zoo"),
    "demo": ("driver.commands.demo", "tune the small network that comes with tilefarm"),
    "explain": ("driver.commands.explain", "say where each layer of a network runs, and why"),
    "check": ("driver.commands.check", "compare every layer on the device with the reference"),
    "conformance": ("driver.commands.conformance", "run the test cases of ONNX itself"),
    "show": ("driver.commands.show", "print what a workload becomes, step by step, as it compiles"),
    "plan": ("driver.commands.plan", "plan when everything runs and where every buffer lies"),
    "replay": ("driver.commands.replay", "repeat a compile that a run has kept"),
    "run": ("driver.commands.run", "run a tuned program on data"),
    "bench": ("driver.commands.bench", "measure tilefarm itself"),
    "submit": ("driver.commands.submit", "have a network tuned on a Ray cluster"),
    "jobs": ("driver.commands.jobs", "list the jobs of a Ray cluster"),
    "logs": ("driver.commands.logs", "print what a job on a Ray cluster says"),
    "cancel": ("driver.commands.cancel", "end a job on a Ray cluster, to be continued or not"),
    "fetch": ("driver.commands.fetch", "bring what a job on a Ray cluster has made"),
    "job": ("driver.commands.job", "run a submitted job; `submit` starts it on the cluster"),
    "tracker": ("device_server.tracker.command", "serve the tracker of a farm"),
    "device": ("device_server.device.command", "serve one device of a farm"),
    "devices": ("driver.commands.devices", "list the devices of a farm"),
    "top": ("driver.commands.top", "watch what the devices of a farm are doing"),
    "pki": ("driver.commands.pki", "make and rotate the certificates and tokens of a farm"),
    "targets": (
        "driver.commands.targets",
        "list the accelerators that are built in, or fit one to its measurements",
    ),
    "vta": ("driver.commands.vta", "look at, run, check and record programs of the accelerator"),
    "doctor": ("driver.commands.doctor", "say what is missing here, and what repairs it"),
}
"""Name of the command: (module, caption)."""


class Command(Protocol):
    """What a module of this package offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options and the examples."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code. Errors of `tilefarm.errors` may be raised."""
        ...


def add_command(commands: Any, name: str, caption: str) -> argparse.ArgumentParser:
    """The parser of a command, or of its action, among those that `add_subparsers` gave."""
    made: argparse.ArgumentParser = commands.add_parser(
        name,
        help=caption,
        description=caption[0].upper() + caption[1:] + ".",
        formatter_class=HelpFormatter,
    )
    return made


def add_actions(
    parser: argparse.ArgumentParser,
    actions: Mapping[str, tuple[str, str]],
    *,
    required: bool = True,
) -> list[argparse.ArgumentParser]:
    """Declare the actions of a command, each a module and its caption, with their options.

    Args:
        required: the command does nothing without one.
    """
    several = parser.add_subparsers(dest="action", metavar="ACTION", required=required)
    made = []
    for name, (module, caption) in actions.items():
        one = add_command(several, name, caption)
        load(module).add_arguments(one)
        made.append(one)
    return made


def load(module: str) -> Command:
    """The command in a module."""
    loaded: Command = importlib.import_module(module)
    return loaded
