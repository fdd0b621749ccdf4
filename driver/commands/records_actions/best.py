"""`tilefarm records best`: the best schedule of one workload, in files for `tilefarm show`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tilefarm.errors import SettingsError
from tilefarm.system_errors import unwritable

from driver.atomic_write import write_atomically
from driver.commands.records_actions.choosing import add_choice, is_wanted, opened
from driver.commands.records_actions.printing import document, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_choice(parser, needed=True)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="gets workload.json and point.json, which `tilefarm show` takes",
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with opened(args.records, read_only=True) as store:
        found = [each.best for each in store.workloads() if is_wanted(args, each.best)]
        if len(found) != 1:
            names = sorted({f"{record.workload.name} on {record.target_name}" for record in found})
            said = f"{len(found)} are known" if found else "none is known"
            raise SettingsError(
                f"{args.workload}: {said}: {', '.join(names[:5])}"
                if names
                else f"{args.workload}: {said}",
                "more of a name that `tilefarm records list` shows, and --target",
            )
        (record,) = found
        if args.out is not None:
            try:
                args.out.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise unwritable(args.out, error, "choose another folder with --out") from None
            point = json.dumps(dict(record.point), indent=2)
            files = {"workload.json": record.workload.to_json(), "point.json": point}
            for name, text in files.items():
                write_atomically(args.out / name, f"{text}\n".encode())
        print_json(document(record))
        return 0
