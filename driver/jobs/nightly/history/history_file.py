"""The SQLite file of a history: its tables, and contents that are kept once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from tilefarm.closing import Closing
from tilefarm.digest import Digest
from tilefarm.errors import OutputError

from driver.jobs.nightly.history.contents import packed, unpacked
from driver.jobs.nightly.records import Night, Row
from tuner.database import Schema, compact, opened, reading, require_sound, writing

Value = TypeVar("Value")

_SCHEMA: Final = Schema(
    (
        """
        CREATE TABLE zoo (name TEXT PRIMARY KEY) STRICT;
        CREATE TABLE nights (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            began REAL NOT NULL,
            ended REAL,
            why_ended TEXT NOT NULL,
            after TEXT NOT NULL,
            place INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE rows (
            id INTEGER PRIMARY KEY,
            model TEXT NOT NULL,
            target TEXT NOT NULL,
            UNIQUE (model, target)
        ) STRICT;
        CREATE TABLE contents (
            id INTEGER PRIMARY KEY,
            digest BLOB NOT NULL UNIQUE,
            content BLOB NOT NULL
        ) STRICT;
        CREATE TABLE samples (
            night INTEGER NOT NULL REFERENCES nights,
            row INTEGER NOT NULL REFERENCES rows,
            part TEXT NOT NULL,
            machine INTEGER NOT NULL,
            code INTEGER NOT NULL,
            schedules INTEGER NOT NULL,
            answers INTEGER NOT NULL,
            layers INTEGER,
            costs INTEGER,
            cost REAL NOT NULL,
            low REAL NOT NULL,
            high REAL NOT NULL,
            again REAL,
            control REAL,
            ended REAL NOT NULL,
            PRIMARY KEY (night, row, part, machine)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX samples_of_row ON samples (row, night);
        CREATE TABLE verdicts (
            night INTEGER NOT NULL REFERENCES nights,
            row INTEGER NOT NULL REFERENCES rows,
            verdict TEXT NOT NULL,
            change REAL,
            against TEXT NOT NULL,
            why TEXT NOT NULL,
            PRIMARY KEY (night, row)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX verdicts_of_row ON verdicts (row, night);
        CREATE TABLE kernels (
            target INTEGER NOT NULL REFERENCES contents,
            schedule INTEGER NOT NULL REFERENCES contents,
            night INTEGER NOT NULL REFERENCES nights,
            kernel INTEGER NOT NULL REFERENCES contents,
            PRIMARY KEY (target, schedule, night)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE adoptions (
            row INTEGER NOT NULL REFERENCES rows,
            night TEXT NOT NULL,
            schedules INTEGER NOT NULL REFERENCES contents,
            who TEXT NOT NULL,
            at REAL NOT NULL,
            PRIMARY KEY (row, night, schedules, who, at)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE acceptances (
            row INTEGER NOT NULL REFERENCES rows,
            night TEXT NOT NULL,
            who TEXT NOT NULL,
            at REAL NOT NULL,
            why TEXT NOT NULL,
            PRIMARY KEY (row, night, who, at, why)
        ) STRICT, WITHOUT ROWID;
        """,
    ),
    application=0x746C666E,
)
_KEY_NBYTES: Final = 16
"""Of a digest: enough for contents that nobody forges, and half of its room in every row."""


class HistoryFile(Closing):
    """The opened file. A context manager.

    Args:
        path: the file; a writer makes it.
        read_only: nothing is made or changed.

    Raises:
        OutputError: it is no history, one of a newer version, damaged, or cannot be opened.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.db = opened(path, _SCHEMA, read_only=read_only, checked=False)
        self._values: dict[tuple[str, int], Any] = {}

    def close(self) -> None:
        """Lets go of the file. Closing twice is closing once."""
        self.db.close()

    def writing(self) -> AbstractContextManager[None]:
        """One transaction: all of it, or nothing."""
        return writing(self.db, self.path)

    def require_sound(self) -> None:
        """Reads all of it.

        Raises:
            DamagedError: something in it is not as it was written.
        """
        with reading(self.path):
            require_sound(self.db, self.path)

    def compact(self) -> None:
        """Gives the room of what was deleted back to the disk."""
        compact(self.db, self.path)

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a query.

        Raises:
            OutputError: the file is damaged, or cannot be read any more.
        """
        with reading(self.path):
            return self.db.execute(sql, values).fetchall()

    def each(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, one after the other: not all of them have to fit into memory.

        Raises:
            OutputError: the file is damaged, or cannot be read any more.
        """
        with reading(self.path):
            yield from self.db.execute(sql)

    def nights(self, zoo: str) -> list[Night]:
        """All of them, the oldest first."""
        return [
            Night(name=name, zoo=zoo, began=began, ended=ended, why_ended=why, after=after)
            for name, began, ended, why, after in self.query(
                "SELECT name, began, ended, why_ended, after FROM nights ORDER BY place"
            )
        ]

    def row_id(self, row: Row) -> int:
        """Of a row that is there, or is now."""
        names = row.model, row.target
        self.db.execute("INSERT OR IGNORE INTO rows (model, target) VALUES (?, ?)", names)
        return self.query_id("SELECT id FROM rows WHERE model = ? AND target = ?", *names)

    def night_id(self, night: str) -> int:
        """Of a night that is there.

        Raises:
            ValueError: it is not: a fault of ours.
        """
        return self.query_id("SELECT id FROM nights WHERE name = ?", night)

    def query_id(self, sql: str, *values: object) -> int:
        """The one number that a query gives."""
        found = self.query(sql, *values)
        if not found:
            raise ValueError(f"not in the history: {', '.join(map(str, values))}")
        return int(found[0][0])

    def keep(self, content: bytes) -> int:
        """The number by which a content is to be had, kept now unless it is there."""
        key = self._key(Digest.of(content))
        found = self.query("SELECT id FROM contents WHERE digest = ?", key)
        return int(found[0][0]) if found else self.keep_packed(key, packed(content))

    def keep_packed(self, key: bytes, content: bytes) -> int:
        """The number of a content as another file keeps it, by its key there."""
        put = "INSERT OR IGNORE INTO contents (digest, content) VALUES (?, ?)"
        self.db.execute(put, (key, content))
        return self.query_id("SELECT id FROM contents WHERE digest = ?", key)

    def key_of(self, number: int | None) -> bytes:
        """By what a content is found in every file; empty for none."""
        rows = self.query("SELECT digest FROM contents WHERE id = ?", number)
        return bytes(rows[0][0]) if rows else b""

    def id_of(self, digest: Digest) -> int:
        """The number of a content that is there.

        Raises:
            ValueError: it is not: a fault of ours.
        """
        number = self.known_id(digest)
        if number is None:
            raise ValueError(f"not in the history: {digest}")
        return number

    def known_id(self, digest: Digest) -> int | None:
        """The number of a content; None where it is not there."""
        rows = self.query("SELECT id FROM contents WHERE digest = ?", self._key(digest))
        return int(rows[0][0]) if rows else None

    def content(self, number: int) -> bytes:
        """What `keep` was given.

        Raises:
            OutputError: it is not there, or damaged.
        """
        rows = self.query("SELECT content FROM contents WHERE id = ?", number)
        with self.decoding():
            if not rows:
                raise ValueError(f"content {number} is not there")
            return unpacked(rows[0][0])

    def read(self, number: int, reader: Callable[[bytes], Value]) -> Value:
        """A content as what it is; what was read once is kept in memory, as few repeat so often."""
        key = reader.__qualname__, number
        if key not in self._values:
            content = self.content(number)
            with self.decoding():
                self._values[key] = reader(content)
        value: Value = self._values[key]
        return value

    @contextmanager
    def decoding(self) -> Iterator[None]:
        """What cannot be read was written by another version, or by nobody."""
        try:
            yield
        except ValueError as error:
            raise OutputError(
                f"{self.path}: holds a record that cannot be read: {error}",
                "update tilefarm, or restore a copy of it",
            ) from None

    @staticmethod
    def _key(digest: Digest) -> bytes:
        return bytes.fromhex(digest.hex)[:_KEY_NBYTES]
