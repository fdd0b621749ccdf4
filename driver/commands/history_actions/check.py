"""`tilefarm history check`: all of the file is read in search of damage."""

from __future__ import annotations

import argparse

from tilefarm.plural import plural
from tilefarm.printable import printable

from driver.commands.history_actions.choosing import opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no options."""


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with opened(args.history, read_only=True) as history:
        history.file.require_sound()
        samples = 0
        for night in history.nights():
            samples += len(history.samples(night=night.name, layers=True))
        for digest in history.schedule_sets():
            history.schedules(digest)
        nights, rows = plural(len(history.nights()), "night"), plural(len(history.rows()), "row")
        print(printable(f"{args.history} is whole: {nights}, {rows}, {plural(samples, 'sample')}"))
    return 0
