"""`tilefarm history show`: what nights say of one row."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilefarm.command_line import whole_from
from tilefarm.printable import printable

from driver.commands.history_actions.choosing import chosen_row, opened
from driver.report.terminal.text_table import text_table

if TYPE_CHECKING:
    from driver.jobs.nightly.history.history import History
    from driver.jobs.nightly.records import Row


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("row", metavar="ROW", help="'MODEL on TARGET'")
    parser.add_argument(
        "--last", type=whole_from(1), default=30, metavar="N", help="nights (default: 30)"
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with opened(args.history, read_only=True) as history:
        for line in _lines(history, chosen_row(history, args.row), args.last):
            print(printable(line))
    return 0


def _lines(history: History, row: Row, last: int) -> Iterator[str]:
    from driver.jobs.nightly.judging.change_points import steps
    from driver.jobs.nightly.records import Pass

    samples = history.samples(row=row)
    known = {each.night: each for each in samples if each.part is Pass.FOUND}
    known |= {each.night: each for each in samples if each.part is Pass.KNOWN}
    rows = []
    for judged in history.verdicts(row=row, last=last):
        sample = known.get(judged.night)
        cost = "-" if sample is None else f"{sample.time.cost:.6g} {sample.machine.clock.value}"
        change = "-" if judged.change is None else f"{100 * judged.change:+.2f} %"
        rows.append((judged.night, cost, change, judged.verdict.value, judged.why))
    yield from text_table(("night", "cost", "change", "verdict", "why"), rows)
    for each in history.acceptances(row):
        yield f"accepted {each.night} by {each.who}{f': {each.why}' if each.why else ''}"
    if found := steps(samples):
        yield f"its times have changed for good in {', '.join(found)}"
