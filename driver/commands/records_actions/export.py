"""`tilefarm records export`: schedules as lines of JSON, or of AutoTVM's log."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tilefarm.plural import plural
from tilefarm.printable import printable

from driver.atomic_write import require_another, write_atomically
from driver.commands.records_actions.choosing import (
    add_choice,
    is_wanted,
    opened,
    vta_target,
    wanted,
)

if TYPE_CHECKING:
    from tuner.schedule_store import ScheduleRecord


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("out", metavar="FILE.jsonl|-", help="gets a record a line; - prints them")
    add_choice(parser)
    parser.add_argument("--best", action="store_true", help="only the best of each workload")
    parser.add_argument(
        "--autotvm",
        action="store_true",
        help="as lines of AutoTVM's log, convolutions of --target alone",
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with opened(args.records, read_only=True) as store:
        if args.best:
            found = [each.best for each in store.workloads() if is_wanted(args, each.best)]
        else:
            found = list(wanted(args, store))
        lines = [*_log_lines(args, found)] if args.autotvm else [r.to_json() for r in found]
        text = "".join(f"{line}\n" for line in lines)
        if args.out == "-":
            sys.stdout.write(text)
            return 0
        require_another(Path(args.out), args.records)
        write_atomically(Path(args.out), text.encode())
        print(printable(f"{plural(len(lines), 'schedule')} written to {args.out}"))
        if len(lines) < len(found):
            print(f"{len(found) - len(lines)} left out: AutoTVM's template has no such choices")
        return 0


def _log_lines(args: argparse.Namespace, found: Iterable[ScheduleRecord]) -> Iterator[str]:
    """Those that AutoTVM's template has as well."""
    from driver.tune.autotvm.log_writing import to_log_line

    target = vta_target(args, "--autotvm")
    for record in found:
        if (line := to_log_line(record, target)) is not None:
            yield line
