"""`tilefarm records merge`: the schedules of other files of records."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

from tilefarm.plural import plural
from tilefarm.printable import printable

from driver.commands.records_actions.choosing import opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.sqlite", help="are only read")


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with ExitStack() as files:
        # All that are read come first: a name that is wrong leaves no new file behind.
        others = [files.enter_context(opened(path, read_only=True)) for path in args.files]
        store = files.enter_context(opened(args.records, read_only=False))
        for path, other in zip(args.files, others, strict=True):
            added = store.add(other.records())
            print(printable(f"{path}: {plural(added, 'schedule')} added of {len(other)}"))
        return 0
