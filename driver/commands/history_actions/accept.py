"""`tilefarm history accept`: what a night measured is what a row costs from then on."""

from __future__ import annotations

import argparse
import os
import pwd

from tilefarm.clock import SystemClock
from tilefarm.errors import DataError
from tilefarm.printable import printable

from driver.commands.history_actions.choosing import chosen_night, chosen_row, opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("rows", nargs="+", metavar="ROW", help="'MODEL on TARGET'")
    parser.add_argument("--why", default="", metavar="WORDS", help="for those who ask later")
    parser.add_argument(
        "--night",
        default="",
        metavar="NIGHT",
        help="how its name begins (default: the last)",
    )
    parser.add_argument("--who", default="", metavar="NAME", help="(default: the user)")


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from driver.jobs.nightly.records import Acceptance

    with opened(args.history, read_only=False) as history:
        night = chosen_night(history, args.night)
        rows = [chosen_row(history, name) for name in args.rows]
        for row in rows:
            if not history.samples(night=night, row=row):
                raise DataError(f"night {night} has not measured {row}", "--night NIGHT")
        for row in rows:
            history.accept(
                Acceptance(
                    row=row,
                    night=night,
                    who=args.who or _user(),
                    when=SystemClock().wall_seconds(),
                    why=args.why,
                )
            )
            print(printable(f"{row}: compared with night {night} from now on"))
    return 0


def _user() -> str:
    """Who the process runs for; the number where the system has no name for it."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
