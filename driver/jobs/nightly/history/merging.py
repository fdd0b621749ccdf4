"""Two histories of one zoo as one: the union of what they know, whichever comes first.

Of two that say something different of the same thing, the same one stays in any order: the later
measurement, the graver verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.history.history_file import HistoryFile
from driver.jobs.nightly.history.night_order import in_order
from driver.jobs.nightly.records import Row, Verdict

_Values: TypeAlias = tuple[Any, ...]

_GRAVITY: Final = {
    verdict.value: place
    for place, verdict in enumerate(
        (
            Verdict.INSUFFICIENT_HISTORY,
            Verdict.UNCHANGED,
            Verdict.DEVICE_CHANGED,
            Verdict.FASTER,
            Verdict.UNSTABLE,
            Verdict.NOT_MEASURED,
            Verdict.SLOWER,
            Verdict.CHANGED_ANSWER,
        )
    )
}


def merge(history: History, other: History) -> int:
    """Takes into a history what another one knows; how many samples were new or later.

    All of it is taken, or nothing.

    Raises:
        OutputError: they are of different zoos, one is damaged, or the disk is full.
    """
    history.require_zoo(other.zoo)
    file, source = history.file, other.file
    source.require_sound()
    with file.writing():
        if other.zoo and not history.zoo:
            file.db.execute("INSERT INTO zoo VALUES (?)", (other.zoo,))
        _merge_nights(file, source)
        ids = _Ids.of(file, source)
        taken = 0
        for table in _TABLES:
            news = _merge_table(file, source, table, ids)
            taken += news if table.name == "samples" else 0
    return taken


@dataclass(frozen=True, slots=True)
class _Ids:
    """What the numbers of one file are in another."""

    nights: Mapping[int, int]
    rows: Mapping[int, int]
    contents: Mapping[int | None, int | None]

    @classmethod
    def of(cls, file: HistoryFile, source: HistoryFile) -> _Ids:
        """The numbers of `source` in `file`, which has all of it afterwards."""
        nights = {n: file.night_id(name) for n, name in source.query("SELECT id, name FROM nights")}
        rows = {
            number: file.row_id(Row(model, target))
            for number, model, target in source.query("SELECT id, model, target FROM rows")
        }
        contents: dict[int | None, int | None] = {None: None}
        for number, key, content in source.each("SELECT id, digest, content FROM contents"):
            contents[number] = file.keep_packed(key, content)
        return cls(nights, rows, contents)


@dataclass(frozen=True, slots=True)
class _Table:
    """One table: what its columns mean, how many of them are its key, and which row stays.

    Attributes:
        columns: name and kind: of a number of a night, a row or a content; "" for a plain value.
        rank: of the values beside the key; of two rows the one with the greater rank stays.
    """

    name: str
    columns: Sequence[tuple[str, str]]
    keys: int
    rank: Callable[[HistoryFile, _Values], _Values] = lambda _, values: values


def _merge_table(file: HistoryFile, source: HistoryFile, table: _Table, ids: _Ids) -> int:
    names = [name for name, _ in table.columns]
    marks = ", ".join("?" * len(names))
    put = f"INSERT OR REPLACE INTO {table.name} ({', '.join(names)}) VALUES ({marks})"
    key = " AND ".join(f"{name} = ?" for name in names[: table.keys])
    others = ", ".join(names[table.keys :]) or "1"
    get = f"SELECT {others} FROM {table.name} WHERE {key}"
    taken = 0
    for values in source.each(f"SELECT {', '.join(names)} FROM {table.name}"):
        mine = tuple(_numbered(values, table, ids))
        there = file.query(get, *mine[: table.keys])
        own = mine[table.keys :]
        if not there or (own and table.rank(file, own) > table.rank(file, there[0])):
            file.db.execute(put, mine)
            taken += 1
    return taken


def _numbered(values: _Values, table: _Table, ids: _Ids) -> Iterator[Any]:
    """Values of a row with the numbers that they have in the other file."""
    known: Mapping[str, Mapping[Any, Any]]
    known = {"night": ids.nights, "row": ids.rows, "content": ids.contents}
    for value, (_, kind) in zip(values, table.columns, strict=True):
        yield known[kind][value] if kind else value


def _sample_rank(file: HistoryFile, values: _Values) -> _Values:
    """The later one; of two at once, in any order that does not depend on numbers of a file."""
    *contents, cost, low, high, again, control, ended = values
    others = (-1.0 if each is None else each for each in (again, control))
    return ended, cost, low, high, *others, *(file.key_of(number) for number in contents)


def _verdict_rank(_: HistoryFile, values: _Values) -> _Values:
    verdict, change, against, why = values
    return _GRAVITY[verdict], change is not None, change or 0.0, against, why


def _kernel_rank(file: HistoryFile, values: _Values) -> _Values:
    return (file.key_of(values[0]),)


_TABLES: Final = (
    _Table(
        "samples",
        (
            *(("night", "night"), ("row", "row"), ("part", ""), ("machine", "content")),
            *(("code", "content"), ("schedules", "content"), ("answers", "content")),
            *(("layers", "content"), ("costs", "content")),
            *((name, "") for name in ("cost", "low", "high", "again", "control", "ended")),
        ),
        4,
        _sample_rank,
    ),
    _Table(
        "verdicts",
        (
            *(("night", "night"), ("row", "row")),
            *((name, "") for name in ("verdict", "change", "against", "why")),
        ),
        2,
        _verdict_rank,
    ),
    _Table(
        "kernels",
        (
            *(("target", "content"), ("schedule", "content"), ("night", "night")),
            ("kernel", "content"),
        ),
        3,
        _kernel_rank,
    ),
    _Table(
        "adoptions",
        (("row", "row"), ("night", ""), ("schedules", "content"), ("who", ""), ("at", "")),
        5,
    ),
    _Table(
        "acceptances",
        (("row", "row"), *((name, "") for name in ("night", "who", "at", "why"))),
        5,
    ),
)


def _merge_nights(file: HistoryFile, source: HistoryFile) -> None:
    """The nights of both, placed anew; of one in both, what was known the latest."""
    put = (
        "INSERT INTO nights (name, began, ended, why_ended, after, place) VALUES (?, ?, ?, ?, ?, 0)"
        " ON CONFLICT (name) DO UPDATE SET began = min(began, excluded.began),"
        " why_ended = CASE WHEN (ifnull(excluded.ended, -1), excluded.why_ended)"
        " > (ifnull(ended, -1), why_ended) THEN excluded.why_ended ELSE why_ended END,"
        " ended = nullif(max(ifnull(ended, -1), ifnull(excluded.ended, -1)), -1),"
        " after = max(after, excluded.after)"
    )
    for values in source.query("SELECT name, began, ended, why_ended, after FROM nights"):
        file.db.execute(put, values)
    place_nights(file)


def place_nights(file: HistoryFile) -> None:
    """Says of each night which it is, from 1."""
    for place, night in enumerate(in_order(file.nights("")), start=1):
        file.db.execute("UPDATE nights SET place = ? WHERE name = ?", (place, night.name))
