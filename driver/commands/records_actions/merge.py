"""`tilefarm records merge`: the schedules of other files of records."""

from __future__ import annotations

import argparse
from pathlib import Path

from tilefarm.plural import plural
from tilefarm.printable import printable

from driver.commands.records_actions.choosing import opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.sqlite", help="are only read")


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with opened(args.records, read_only=False) as store:
        others = []
        for path in args.files:
            others.append(opened(path, read_only=True))
        for path, other in zip(args.files, others, strict=True):
            with other:
                added = store.add(other.records())
                print(printable(f"{path}: {plural(added, 'schedule')} added of {len(other)}"))
        return 0
