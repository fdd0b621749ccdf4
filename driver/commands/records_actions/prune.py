"""`tilefarm records prune`: all but the best schedules go."""

from __future__ import annotations

import argparse

from tilefarm.command_line import whole_from
from tilefarm.plural import form, plural

from driver.commands.records_actions.choosing import opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--keep",
        type=whole_from(1),
        required=True,
        metavar="N",
        help="the best N of each workload on each target stay",
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with opened(args.records, read_only=False) as store:
        dropped = store.prune(args.keep)
        left = len(store)
        print(f"{plural(dropped, 'schedule')} dropped, {left} {form(left, 'stays', 'stay')}")
        return 0
