"""`tilefarm records list`: the workloads that are known."""

from __future__ import annotations

import argparse

from tilefarm.plural import plural

from driver.commands.records_actions.choosing import add_choice, add_json, is_wanted, opened
from driver.commands.records_actions.printing import (
    cost_text,
    day,
    document,
    print_json,
    print_table,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_choice(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with opened(args.records, read_only=True) as store:
        found = [each for each in store.workloads() if is_wanted(args, each.best)]
        if args.json:
            print_json([{"schedules": each.schedules, **document(each.best)} for each in found])
            return 0
        rows = [
            (
                each.best.workload.name,
                each.best.target_name,
                str(each.schedules),
                cost_text(each.best),
                day(each.best),
            )
            for each in found
        ]
        print_table(("workload", "target", "schedules", "best", "measured"), rows)
        targets = len({each.best.target for each in found})
        total = sum(each.schedules for each in found)
        print(
            f"{plural(total, 'schedule')} of {plural(len(found), 'workload')} on"
            f" {plural(targets, 'target')}"
        )
        return 0
