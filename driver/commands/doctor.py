"""`tilefarm doctor`: what is missing on this machine or in a farm, and what repairs it."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from tilefarm.clock import SystemClock
from tilefarm.errors import SettingsError
from tilefarm.printable import printable_words
from tilefarm.quiet import quiet_libraries
from tilefarm.trust.credentials import credentials

from driver.commands.options.farm import add_tracker_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driver.doctor import DoctorFinding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    add_tracker_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.epilog = (
        "examples:\n"
        "  tilefarm doctor                                                      this machine\n"
        "  tilefarm doctor --tracker 127.0.0.1:9190 --token-file farm.token     a farm, from here\n"
        "The exit code is 0 when nothing is missing, 2 otherwise."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    quiet_libraries()
    findings = findings_of(args)
    if args.json:
        print(json.dumps([_document(finding) for finding in findings]))
    else:
        for finding in map(printable_words, findings):
            print(f"{'ok  ' if finding.good else 'BAD '} {finding.subject:12} {finding.detail}")
            if not finding.good:
                print(f"       try: {finding.repair}")
    return 0 if all(finding.good for finding in findings) else 2


def _document(finding: DoctorFinding) -> dict[str, object]:
    """A finding's fields; what is good has no repair."""
    return asdict(finding) | ({"repair": ""} if finding.good else {})


def findings_of(args: argparse.Namespace) -> Sequence[DoctorFinding]:
    """Of this machine, or of a farm.

    Raises:
        SettingsError: an option is for a farm, and there is none.
    """
    if args.tracker is None:
        for option, value in (("--token-file", args.token_file), ("--tls", args.tls)):
            if value is not None:
                raise SettingsError(f"{option} is for a farm", "add --tracker HOST:PORT")
        from driver.doctor import examine

        return examine()
    if args.token_file is None:
        raise SettingsError("doctor --tracker needs --token-file", "your token, or the farm's")
    from driver.farm.farm_check import FarmAddress, examine_farm

    options = ["--tracker", args.tracker, "--token-file", str(args.token_file)]
    if args.tls is not None:
        options += ["--tls", str(args.tls)]
    farm = FarmAddress(
        tracker=args.tracker,
        credentials=credentials(args.token_file, args.tls),
        options=" ".join(options),
    )
    return list(examine_farm(farm, SystemClock()))
