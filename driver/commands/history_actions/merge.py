"""`tilefarm history merge`: what other histories of the zoo know."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

from tilefarm.plural import plural
from tilefarm.printable import printable

from driver.commands.history_actions.choosing import opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("others", nargs="+", type=Path, metavar="DIR", help="are only read")


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from driver.jobs.nightly.history.merging import merge

    with ExitStack() as stack:
        history = stack.enter_context(opened(args.history, read_only=False))
        others = [stack.enter_context(opened(path, read_only=True)) for path in args.others]
        for path, other in zip(args.others, others, strict=True):
            taken = merge(history, other)
            print(printable(f"{path}: {plural(taken, 'sample')} added"))
    return 0
