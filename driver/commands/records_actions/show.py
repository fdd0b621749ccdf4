"""`tilefarm records show`: the schedules of workloads, the best first."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from tilefarm.command_line import whole_from

from driver.commands.records_actions.choosing import add_choice, add_json, opened, wanted
from driver.commands.records_actions.printing import (
    cost_text,
    day,
    document,
    print_json,
    print_table,
)

if TYPE_CHECKING:
    from tuner.schedule_store import ScheduleRecord

_MOST_SHOWN: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_choice(parser)
    parser.add_argument(
        "--most",
        type=whole_from(1),
        default=_MOST_SHOWN,
        metavar="N",
        help=f"schedules of each workload (default: {_MOST_SHOWN})",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with opened(args.records, read_only=True) as store:
        seen: dict[tuple[str, str, str], int] = {}
        shown: list[ScheduleRecord] = []
        for record in wanted(args, store):
            group = record.target.hex, record.workload.name, record.clock.value
            seen[group] = seen.get(group, 0) + 1
            if seen[group] <= args.most:
                shown.append(record)
        if args.json:
            print_json([document(record) for record in shown])
            return 0
        rows = [
            (
                f"{record.workload.name} {record.trace.short}",
                record.target_name,
                cost_text(record),
                record.device or "-",
                record.version or "-",
                day(record),
            )
            for record in shown
        ]
        print_table(("schedule", "target", "took", "on", "by tilefarm", "measured"), rows)
        return 0
