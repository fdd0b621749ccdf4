"""Which file, and which of its records: options that several actions have."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tilefarm.errors import DataError, SettingsError

if TYPE_CHECKING:
    from tilefarm.target import Target

    from tuner.schedule_store import ScheduleRecord, ScheduleStore


def opened(path: Path, *, read_only: bool) -> ScheduleStore:
    """The file of records.

    Raises:
        DataError: it is only to be read, and is not there.
        OutputError: it is no such file.
    """
    from tuner.schedule_store import ScheduleStore

    if read_only and not path.exists():
        raise DataError(f"{path}: there is no such file", "`tilefarm tune --records` makes it")
    return ScheduleStore(path, read_only=read_only)


def add_choice(parser: argparse.ArgumentParser, *, needed: bool = False) -> None:
    """Declare which workloads, and of which target."""
    parser.add_argument(
        "workload",
        nargs=None if needed else "?",
        default="",
        metavar="WORKLOAD",
        help="a name, or how it begins" + ("" if needed else " (default: all)"),
    )
    parser.add_argument("--target", metavar="NAME", help="only of this one (default: all)")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare `--json`."""
    parser.add_argument("--json", action="store_true", help="one JSON document")


def is_wanted(args: argparse.Namespace, record: ScheduleRecord) -> bool:
    """Whether the options name its workload and its target."""
    is_named = record.workload.name.startswith(args.workload)
    return is_named and args.target in (None, record.target_name)


def wanted(args: argparse.Namespace, store: ScheduleStore) -> Iterator[ScheduleRecord]:
    """The records that the options name; of each workload the best first."""
    return (record for record in store.records() if is_wanted(args, record))


def vta_target(args: argparse.Namespace, why: str) -> Target:
    """The VTA that `--target` names.

    Raises:
        SettingsError: it names none.
    """
    from driver.targets import usable_target

    target = None if args.target is None else usable_target(args.target)
    if target is None or target.vta is None:
        raise SettingsError(f"{why}: the VTA that it is of is to be named", "--target pynq-z1")
    return target
