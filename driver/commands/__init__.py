"""The subcommands: one file each, imported only when it is wanted."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final, Protocol

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "tune": ("driver.commands.tune", "find the fastest program for a network"),
    "demo": ("driver.commands.demo", "tune the small network that comes with tilefarm"),
    "run": ("driver.commands.run", "run a tuned program on data"),
    "bench": ("driver.commands.bench", "measure tilefarm itself"),
    "tracker": ("driver.commands.tracker", "serve the tracker of a farm"),
    "device": ("driver.commands.device", "serve one device of a farm"),
    "devices": ("driver.commands.devices", "list the devices of a farm"),
    "targets": ("driver.commands.targets", "list the accelerators that are built in"),
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
