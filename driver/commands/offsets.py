"""`tilefarm plan FILE.csv`: offsets for buffers whose lifetimes are given."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from tilefarm.errors import SettingsError
from tilefarm.plural import plural
from tilefarm.printable import page_text, printable_lines
from tilefarm.system_errors import unwritable

from driver.atomic_write import write_atomically
from driver.memory import Memory, Reason, Residency
from driver.memory.allocate import Allocation, Unallocated, allocate
from driver.memory.minimalloc_csv import NamedInterval, minimalloc_text, read_minimalloc
from driver.report.html import html_page
from driver.report.memory_map import memory_map


def allocated(args: argparse.Namespace) -> int:
    """Do it; the exit code.

    Raises:
        SettingsError: an option is of schedules, which such a file has none of.
        DataError: the file cannot be read; names the line.
    """
    for option in ("compare", "trace", "measured", "throughput"):
        if getattr(args, option) is not None:
            raise SettingsError(
                f"--{option} is of schedules, and {args.model} has lifetimes alone",
                "--html, --csv or --json",
            )
    rows = read_minimalloc(Path(args.model))
    found = allocate(
        [row.interval for row in rows],
        capacity_nbytes=args.capacity or None,
        seconds=args.seconds,
        seed=args.seed,
    )
    if isinstance(found, Unallocated):
        return _told_why(args, found)
    _write(args, rows, found)
    if args.json:
        print(json.dumps(_document(rows, found)))
        return 0
    is_best = ", which is the smallest there is" if found.is_optimal else ""
    how = f"searched, {found.nodes} nodes" if found.nodes else "packed"
    print(f"{plural(len(rows), 'buffer')}, peak {found.peak_nbytes} bytes{is_best}")
    print(f"no allocation is below {found.bound_nbytes} bytes; {how}")
    return 0


def _told_why(args: argparse.Namespace, found: Unallocated) -> int:
    room = f"{args.capacity} bytes" if args.capacity else "the memory"
    why = (
        f"no allocation fits {room}: {found.bound_nbytes} are needed at least"
        if found.is_proved
        else f"none was found within {room}; {found.bound_nbytes} are needed at least"
    )
    print(json.dumps({"infeasible": why}) if args.json else printable_lines(why))
    return 1


def _document(rows: Sequence[NamedInterval], found: Allocation) -> dict[str, object]:
    return {
        "offsets": {row.name: at for row, at in zip(rows, found.offsets, strict=True)},
        "peak_nbytes": found.peak_nbytes,
        "bound_nbytes": found.bound_nbytes,
        "is_optimal": found.is_optimal,
        "nodes": found.nodes,
    }


def _write(args: argparse.Namespace, rows: Sequence[NamedInterval], found: Allocation) -> None:
    for path, text in (
        (args.html, _page(args, rows, found) if args.html else ""),
        (args.csv, minimalloc_text(rows, found.offsets) if args.csv else ""),
    ):
        if path is None:
            continue
        try:
            write_atomically(path, text.encode())
        except OSError as error:
            raise unwritable(path, error, "name a file in a folder that there is") from None


def _page(args: argparse.Namespace, rows: Sequence[NamedInterval], found: Allocation) -> str:
    residencies = [
        Residency(
            buffer=row.name,
            memory="memory",
            offset=offset,
            nbytes=row.interval.nbytes,
            begin=begin,
            end=end,
            reason=Reason.WRITTEN,
        )
        for row, offset in zip(rows, found.offsets, strict=True)
        for begin, end in row.interval.lifetimes
    ]
    end = max((each.end for each in residencies), default=0)
    chart = memory_map(Memory(capacity_nbytes=args.capacity), residencies, found.bound_nbytes, end)
    title = page_text(str(args.model))
    words = f"{len(rows)} buffers, peak {found.peak_nbytes} bytes, bound {found.bound_nbytes}"
    return html_page(title, f"<h1>{title}</h1><p class=sub>{words}</p>{chart}")
