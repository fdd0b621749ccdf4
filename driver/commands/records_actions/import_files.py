"""`tilefarm records import`: what was exported, or a log of AutoTVM."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilefarm.errors import DataError
from tilefarm.plural import plural
from tilefarm.printable import printable
from tilefarm.system_errors import unreadable

from driver.commands.records_actions.choosing import opened, vta_target

if TYPE_CHECKING:
    from tuner.schedule_store import ScheduleRecord

_MOST_REFUSED: Final = 10
"""Lines of a file that are named."""
_LINE_NBYTES: Final = 1 << 20
"""No record comes near it."""
_OTHER_FILE: Final = "name a file that `tilefarm records export` has written"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="of `export`, or a log of AutoTVM"
    )
    parser.add_argument("--target", metavar="NAME", help="the VTA that a log of AutoTVM is of")


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code: 2 where lines were refused, and the others are kept."""
    good: list[ScheduleRecord] = []
    refused: list[str] = []
    for path in args.files:
        records, reasons = _read(path, args)
        good += records
        refused += [f"{path}, {reason}" for reason in reasons]
    with opened(args.records, read_only=False) as store:
        added = store.add(good)
    print(f"{plural(added, 'schedule')} added, {len(good) - added} known or older")
    for line in refused[:_MOST_REFUSED]:
        print(printable(f"refused: {line}"), file=sys.stderr)
    if len(refused) > _MOST_REFUSED:
        print(f"refused: {len(refused) - _MOST_REFUSED} more", file=sys.stderr)
    return 2 if refused else 0


def _read(path: Path, args: argparse.Namespace) -> tuple[list[ScheduleRecord], list[str]]:
    """The records of a file, and why its other lines are none."""
    from driver.tune.autotvm.log import is_log_line, records_of_log
    from tuner.schedule_store import ScheduleRecord

    good: list[ScheduleRecord] = []
    refused: list[tuple[int, str]] = []
    of_autotvm: list[tuple[int, str]] = []
    for place, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        if is_log_line(line):
            of_autotvm.append((place, line))
            continue
        try:
            good.append(ScheduleRecord.from_json(line))
        except ValueError as error:
            refused.append((place, str(error)))
    if of_autotvm:
        target = vta_target(args, f"{path}: a log of AutoTVM")
        found, others = records_of_log(of_autotvm, target)
        good += found
        refused += [(each.line, each.why) for each in others]
    return good, [f"line {place}: {why}" for place, why in sorted(refused)]


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text.

    Raises:
        DataError: it cannot be read, or is no text.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            while line := file.readline(_LINE_NBYTES):
                yield line
    except UnicodeDecodeError:
        raise DataError(f"{path}: no text", _OTHER_FILE) from None
    except OSError as error:
        raise unreadable(path, error, _OTHER_FILE) from None
