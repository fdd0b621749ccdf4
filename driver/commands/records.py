"""`tilefarm records`: the schedules that runs have left in one file, for those to come."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilefarm.command_line import whole_from
from tilefarm.errors import DataError, SettingsError
from tilefarm.plural import form, plural
from tilefarm.printable import printable, printable_lines
from tilefarm.system_errors import unreadable, unwritable

from driver.atomic_write import write_atomically
from driver.commands import add_command
from driver.commands.options.shared import add_records_option

if TYPE_CHECKING:
    from tuner.schedule_store import ScheduleRecord, ScheduleStore

_EPILOG: Final = """\
`tilefarm tune --records FILE.sqlite` begins with the best that is there, and adds what it measures.
Files of several machines are merged in any order to the same.

examples:
  tilefarm tune net.onnx --calibrate data.npz --records team.sqlite
  tilefarm records list --records team.sqlite
  tilefarm records best conv2d_1x4 --records team.sqlite --out best
  tilefarm show --workload best/workload.json --point best/point.json
  tilefarm records export all.jsonl --records team.sqlite
  tilefarm records import theirs.jsonl --records team.sqlite
  tilefarm records merge mine.sqlite yours.sqlite --records team.sqlite
  tilefarm records prune --keep 20 --records team.sqlite
"""
_MOST_SHOWN: Final = 20
_MOST_REFUSED: Final = 10
"""Lines of a file that are named."""
_LINE_NBYTES: Final = 1 << 20
"""No record comes near it."""
_OTHER_FILE: Final = "name a file that `tilefarm records export` has written"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions with their options."""
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (caption, declare, _) in _ACTIONS.items():
        one = add_command(actions, name, caption)
        declare(one)
        add_records_option(one, "the file", needed=True)


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from tuner.schedule_store import ScheduleStore

    _, _, act = _ACTIONS[args.action]
    writes = args.action in _WRITING
    if not writes and not args.records.exists():
        raise DataError(
            f"{args.records}: there is no such file", "`tilefarm tune --records` makes it"
        )
    with ScheduleStore(args.records, read_only=not writes) as store:
        return act(args, store)


# -- looking ---------------------------------------------------------------------------------------


def _declare_list(parser: argparse.ArgumentParser) -> None:
    _add_choice(parser)
    _add_json(parser)


def _list(args: argparse.Namespace, store: ScheduleStore) -> int:
    found = [each for each in store.workloads() if _is_wanted(args, each.best)]
    if args.json:
        _print_json([{"schedules": each.schedules, **_document(each.best)} for each in found])
        return 0
    rows = [
        (
            each.best.workload.name,
            each.best.target_name,
            str(each.schedules),
            cost_text(each.best),
            _day(each.best),
        )
        for each in found
    ]
    _print_table(("workload", "target", "schedules", "best", "measured"), rows)
    targets = len({each.best.target for each in found})
    total = sum(each.schedules for each in found)
    print(
        f"{plural(total, 'schedule')} of {plural(len(found), 'workload')} on"
        f" {plural(targets, 'target')}"
    )
    return 0


def _declare_show(parser: argparse.ArgumentParser) -> None:
    _add_choice(parser)
    parser.add_argument(
        "--most",
        type=whole_from(1),
        default=_MOST_SHOWN,
        metavar="N",
        help=f"schedules of each workload (default: {_MOST_SHOWN})",
    )
    _add_json(parser)


def _show(args: argparse.Namespace, store: ScheduleStore) -> int:
    seen: dict[tuple[str, str, str], int] = {}
    shown: list[ScheduleRecord] = []
    for record in _wanted(args, store):
        group = record.target.hex, record.workload.name, record.clock.value
        seen[group] = seen.get(group, 0) + 1
        if seen[group] <= args.most:
            shown.append(record)
    if args.json:
        _print_json([_document(record) for record in shown])
        return 0
    rows = [
        (
            f"{record.workload.name} {record.trace.short}",
            record.target_name,
            cost_text(record),
            record.device or "-",
            record.version or "-",
            _day(record),
        )
        for record in shown
    ]
    _print_table(("schedule", "target", "took", "on", "by tilefarm", "measured"), rows)
    return 0


def _declare_best(parser: argparse.ArgumentParser) -> None:
    _add_choice(parser, needed=True)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="gets workload.json and point.json, which `tilefarm show` takes",
    )


def _best(args: argparse.Namespace, store: ScheduleStore) -> int:
    found = [each.best for each in store.workloads() if _is_wanted(args, each.best)]
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
        write_atomically(args.out / "workload.json", (record.workload.to_json() + "\n").encode())
        point = json.dumps(dict(record.point), indent=2) + "\n"
        write_atomically(args.out / "point.json", point.encode())
    _print_json(_document(record))
    return 0


# -- moving ----------------------------------------------------------------------------------------


def _declare_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", metavar="FILE.jsonl|-", help="gets a record a line; - prints them")
    _add_choice(parser)
    parser.add_argument("--best", action="store_true", help="only the best of each workload")


def _export(args: argparse.Namespace, store: ScheduleStore) -> int:
    if args.best:
        found = [each.best for each in store.workloads() if _is_wanted(args, each.best)]
    else:
        found = list(_wanted(args, store))
    text = "".join(record.to_json() + "\n" for record in found)
    if args.out == "-":
        sys.stdout.write(text)
        return 0
    write_atomically(Path(args.out), text.encode())
    print(printable(f"{plural(len(found), 'schedule')} written to {args.out}"))
    return 0


def _declare_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl", help="of `export`")


def _import(args: argparse.Namespace, store: ScheduleStore) -> int:
    good: list[ScheduleRecord] = []
    refused: list[str] = []
    for path in args.files:
        for place, line in enumerate(_lines(path), start=1):
            try:
                good.append(_parsed(line))
            except ValueError as error:
                refused.append(f"{path}, line {place}: {error}")
    added = store.add(good)
    print(f"{plural(added, 'schedule')} added, {len(good) - added} known or older")
    for line in refused[:_MOST_REFUSED]:
        print(printable(f"refused: {line}"), file=sys.stderr)
    if len(refused) > _MOST_REFUSED:
        print(f"refused: {len(refused) - _MOST_REFUSED} more", file=sys.stderr)
    return 2 if refused else 0


def _declare_merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.sqlite", help="are only read")


def _merge(args: argparse.Namespace, store: ScheduleStore) -> int:
    from tuner.schedule_store import ScheduleStore

    others = []
    for path in args.files:
        if not path.exists():
            raise DataError(f"{path}: there is no such file", "name files of records")
        others.append(ScheduleStore(path, read_only=True))
    for path, other in zip(args.files, others, strict=True):
        with other:
            added = store.add(other.records())
            print(printable(f"{path}: {plural(added, 'schedule')} added of {len(other)}"))
    return 0


def _declare_prune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep",
        type=whole_from(1),
        required=True,
        metavar="N",
        help="the best N of each workload on each target stay",
    )


def _prune(args: argparse.Namespace, store: ScheduleStore) -> int:
    dropped = store.prune(args.keep)
    print(
        f"{plural(dropped, 'schedule')} dropped, {len(store)} {form(len(store), 'stays', 'stay')}"
    )
    return 0


_Declare = Callable[[argparse.ArgumentParser], None]
_Act = Callable[[argparse.Namespace, "ScheduleStore"], int]

_ACTIONS: Final[Mapping[str, tuple[str, _Declare, _Act]]] = {
    "list": ("list the workloads that are known", _declare_list, _list),
    "show": ("list the schedules of workloads, the best first", _declare_show, _show),
    "best": ("print the best schedule of one workload", _declare_best, _best),
    "export": ("write schedules as JSON, one a line", _declare_export, _export),
    "import": ("add schedules that were exported", _declare_import, _import),
    "merge": ("add the schedules of other files of records", _declare_merge, _merge),
    "prune": ("drop all but the best schedules", _declare_prune, _prune),
}
_WRITING: Final = ("import", "merge", "prune")


# -- choosing and printing -------------------------------------------------------------------------


def _add_choice(parser: argparse.ArgumentParser, *, needed: bool = False) -> None:
    parser.add_argument(
        "workload",
        nargs=None if needed else "?",
        default="",
        metavar="WORKLOAD",
        help="a name, or how it begins" + ("" if needed else " (default: all)"),
    )
    parser.add_argument("--target", metavar="NAME", help="only of this one (default: all)")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document")


def _is_wanted(args: argparse.Namespace, record: ScheduleRecord) -> bool:
    is_named = record.workload.name.startswith(args.workload)
    return is_named and args.target in (None, record.target_name)


def _wanted(args: argparse.Namespace, store: ScheduleStore) -> Iterator[ScheduleRecord]:
    return (record for record in store.records() if _is_wanted(args, record))


def cost_text(record: ScheduleRecord) -> str:
    """`3 468 cycles`, or `12.3 us`."""
    from driver.report.cost import microseconds

    if record.cycles is not None:
        return f"{record.cycles:,} cycles".replace(",", " ")
    return microseconds(record.cost)


def _day(record: ScheduleRecord) -> str:
    return datetime.fromtimestamp(record.ended, UTC).date().isoformat()


def _document(record: ScheduleRecord) -> dict[str, object]:
    document: dict[str, object] = json.loads(record.to_json())
    return {"name": record.workload.name, **document}


def _print_json(document: object) -> None:
    print(json.dumps(document))


def _print_table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from driver.report.terminal.text_table import text_table

    for line in text_table(titles, rows):
        print(printable_lines(line))


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text that are not empty, in their places.

    Raises:
        DataError: it cannot be read, or is no text.
    """
    try:
        with path.open(encoding="utf-8") as file:
            while line := file.readline(_LINE_NBYTES):
                yield line
    except UnicodeDecodeError:
        raise DataError(f"{path}: no text", _OTHER_FILE) from None
    except OSError as error:
        raise unreadable(path, error, _OTHER_FILE) from None


def _parsed(line: str) -> ScheduleRecord:
    from tuner.schedule_store import ScheduleRecord

    return ScheduleRecord.from_json(line)
