"""`tilefarm history export`: everything as one JSON document, or as tables in CSV."""

from __future__ import annotations

import argparse
from pathlib import Path

from tilefarm.printable import printable

from driver.commands.history_actions.choosing import opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("out", type=Path, metavar="FILE.json|DIR", help="what is written")
    parser.add_argument("--csv", action="store_true", help="a file for each table, in a folder")


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from driver.jobs.nightly.history.export import export_csv, export_json

    with opened(args.history, read_only=True) as history:
        if args.csv:
            written = export_csv(history, args.out)
        else:
            export_json(history, args.out)
            written = [args.out]
    for path in written:
        print(printable(f"written {path}"))
    return 0
