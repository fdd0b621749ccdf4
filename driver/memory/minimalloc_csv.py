"""Problems of fixed lifetimes as CSV files, in the format of google/minimalloc.

A row is a buffer. Columns by name, in any order: `id`, `lower`, `upper`, `size`, and optional ones:
`alignment`; `gaps`, in which it does not live ("3-5 7-9"); `offset` or `fixed`, where it must lie,
empty for anywhere; `hint`, which is passed over. Lifetimes are half open; with the old names
`start` and `end` the end is included. (`src/converter.cc` of google/minimalloc.) What spreadsheets
put around is taken off: quotes, the mark of the encoding, two characters that end a line.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from tilefarm.documents import read_text
from tilefarm.errors import DataError
from tilefarm.system_errors import unreadable

from driver.memory.allocate import Interval, flaw

_COLUMNS: Final[Mapping[str, str]] = {
    "id": "id",
    "buffer": "id",
    "buffer_id": "id",
    "lower": "lower",
    "begin": "lower",
    "start": "lower",
    "upper": "upper",
    "end": "upper",
    "size": "size",
    "alignment": "alignment",
    "gaps": "gaps",
    "offset": "offset",
    "fixed": "offset",
    "hint": "hint",
}
"""Names of columns: what they mean."""

_REQUIRED: Final = ("id", "lower", "upper", "size")
_INTEGER: Final = re.compile(r" *-?[0-9]{1,19} *")
_GAP: Final = re.compile(r"(-?[0-9]{1,19})-(-?[0-9]{1,19})")
_HINT: Final = "rows as `id,lower,upper,size`, as google/minimalloc writes them"


@dataclass(frozen=True, slots=True)
class NamedInterval:
    """A row: a buffer and what it is called."""

    name: str
    interval: Interval


def read_minimalloc(path: Path) -> tuple[NamedInterval, ...]:
    """The buffers of a file.

    Raises:
        DataError: it cannot be read, or a row cannot be; names the file, the line and what.
    """
    try:
        lines = read_text(path).splitlines()
    except OSError as error:
        raise unreadable(path, error, "name a file that is there") from None
    except ValueError as error:
        raise DataError(f"{path}: {error}", _HINT) from None
    if not lines:
        raise DataError(f"{path}:1: no header", _HINT)
    try:
        columns = [each.strip() for each in _fields(lines[0])]
        if why := _header_flaw(columns):
            raise ValueError(why)
    except ValueError as error:
        raise DataError(f"{path}:1: {error}", _HINT) from error
    known = {_COLUMNS[name]: at for at, name in enumerate(columns)}
    included = int("end" in columns)
    rows: dict[str, NamedInterval] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        try:
            row = _row(_fields(line), known, len(columns), included)
            if row.name in rows:
                raise ValueError(f"a second buffer {row.name!r}")
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}", _HINT) from error
        rows[row.name] = row
    return tuple(rows.values())


def minimalloc_text(rows: Sequence[NamedInterval], offsets: Sequence[int] | None = None) -> str:
    """A file with these buffers, and where they lie: the given offsets, or those that are fixed."""
    intervals = [row.interval for row in rows]
    columns = {
        "id": [row.name for row in rows],
        "lower": [str(min(each.lifetimes)[0]) for each in intervals],
        "upper": [str(max(each.lifetimes)[1]) for each in intervals],
        "size": [str(each.nbytes) for each in intervals],
    }
    if any(each.alignment != 1 for each in intervals):
        columns["alignment"] = [str(each.alignment) for each in intervals]
    if any(each.later for each in intervals):
        columns["gaps"] = [" ".join(_gaps(each)) for each in intervals]
    if offsets is not None:
        columns["offset"] = [str(offset) for offset in offsets]
    elif any(each.fixed_offset is not None for each in intervals):
        fixed = (each.fixed_offset for each in intervals)
        columns["offset"] = ["" if offset is None else str(offset) for offset in fixed]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _fields(line: str) -> list[str]:
    """Those of a row: in quotes where one has a comma.

    Raises:
        ValueError: one is too long.
    """
    try:
        return next(csv.reader([line]), [])
    except csv.Error as error:
        raise ValueError(str(error)) from None


def _header_flaw(columns: Sequence[str]) -> str:
    for name in columns:
        if name not in _COLUMNS:
            return f"no column is called {name!r}"
    meanings = [_COLUMNS[name] for name in columns]
    for meaning in meanings:
        if meanings.count(meaning) > 1:
            return f"two columns say {meaning!r}"
    for name in _REQUIRED:
        if name not in meanings:
            return f"there is no column {name!r}"
    return ""


def _row(
    fields: Sequence[str], known: Mapping[str, int], count: int, included: int
) -> NamedInterval:
    """What a line says; an end that is `included` is 1 before what ends a lifetime.

    Raises:
        ValueError: what is wrong with it.
    """
    if len(fields) != count:
        raise ValueError(f"{len(fields)} fields instead of {count}")

    begin = _number(fields, known, "lower")
    end = _number(fields, known, "upper") + included
    gaps = fields[known["gaps"]] if "gaps" in known else ""
    first, *later = _lifetimes(begin, end, gaps, included) if gaps else [(begin, end)]
    is_fixed = "offset" in known and fields[known["offset"]]
    interval = Interval(
        lower=first[0],
        upper=first[1],
        nbytes=_number(fields, known, "size"),
        alignment=_number(fields, known, "alignment") if "alignment" in known else 1,
        fixed_offset=_number(fields, known, "offset") if is_fixed else None,
        later=tuple(later),
    )
    if why := flaw(interval):
        raise ValueError(why)
    return NamedInterval(fields[known["id"]].strip(), interval)


def _number(fields: Sequence[str], known: Mapping[str, int], column: str) -> int:
    text = fields[known[column]]
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{column} is {text[:40]!r}, not a number")
    return int(text)


def _lifetimes(begin: int, end: int, gaps: str, included: int) -> list[tuple[int, int]]:
    """What gaps leave of [begin, end)."""
    found = []
    for text in gaps.split():
        gap = _GAP.fullmatch(text)
        if gap is None:
            raise ValueError(f"{text[:40]!r} is no gap in time, such as 3-5")
        lower, upper = int(gap[1]), int(gap[2]) + included
        if not begin <= lower < upper <= end:
            raise ValueError(f"the gap {text} is not in what is left of its lifetime")
        if begin < lower:
            found.append((begin, lower))
        begin = upper
    if begin < end:
        found.append((begin, end))
    if not found:
        raise ValueError("its gaps leave no lifetime")
    return found


def _gaps(interval: Interval) -> Iterator[str]:
    ordered = sorted(interval.lifetimes)
    for (_, end), (begin, _) in pairwise(ordered):
        if end < begin:
            yield f"{end}-{begin}"
