"""A SQLite file of records: its lock, its checks, and its schema brought up to date."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from tilefarm.errors import DiskError, OutputError
from tilefarm.system_errors import unwritable

_PRIMARY_CODE: Final = 0xFF
"""Of a result code: its other bits say more (https://www.sqlite.org/rescode.html)."""

Database: TypeAlias = sqlite3.Connection


@dataclass(frozen=True, slots=True)
class Schema:
    """What a file of records holds.

    Attributes:
        migrations: scripts; number i brings a file of user_version i to i + 1. Only ever appended
            to.
        application: SQLite's application_id, which tells our files from one another.
    """

    migrations: Sequence[str]
    application: int = 0


class DamagedError(OutputError):
    """What lies there is no sound database."""


def locked(path: Path) -> Any:
    """An open lock file; the system lets go of the lock when the process ends, however it ends."""
    try:
        lock = path.with_name(path.name + ".lock").open("a")
    except OSError as error:
        raise unwritable(path, error, "choose another folder") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise OutputError(
            f"another run is writing to {path}", "wait for it to end, or choose another folder"
        ) from None
    return lock


def opened(path: Path, schema: Schema, *, read_only: bool, checked: bool = True) -> Database:
    """The file with this version's schema.

    A file of an older version that is only to be read stays as it is: what is read is a copy in
    memory, brought up to date.

    Args:
        path, schema, read_only: what is opened, and how.
        checked: all of it is read in search of damage, which takes a second for each gigabyte or
            so; else `reading` tells what is found to be damaged later.
    """
    if path.exists() and not path.is_file():  # A pipe would be waited for without an end.
        raise OutputError(f"{path} is no file", "name a file")
    try:
        db = _connected(path, _mode(path, read_only=read_only))
    except sqlite3.OperationalError as error:
        raise OutputError(f"cannot open {path}: {error}", "choose another place") from None
    try:
        if checked:
            require_sound(db, path)
        _check(db, path, schema)
        if not read_only:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA foreign_keys = ON")
            migrate(db, schema)
        elif _version(db) < len(schema.migrations):
            db = _copied_to_memory(db)
            migrate(db, schema)
    except sqlite3.OperationalError as error:
        db.close()
        raise (_unreadable if read_only else _unwritable)(path, error) from None
    except sqlite3.DatabaseError as error:
        db.close()
        raise _damaged(path, str(error)) from None
    except BaseException:
        db.close()
        raise
    return db


def _mode(path: Path, *, read_only: bool) -> str:
    """How SQLite is to open a file.

    To read a file with a write-ahead log, SQLite makes one of locks beside it. Where it cannot,
    because the folder may not be written or the disk is full, and the log holds nothing, the file
    is read as it is (https://www.sqlite.org/wal.html#read_only_databases).
    """
    if not read_only:
        return "mode=rwc"
    try:
        with closing(_connected(path, "mode=ro")) as db:
            _version(db)
    except sqlite3.OperationalError as error:
        log = path.with_name(f"{path.name}-wal")
        is_whole = not log.exists() or not log.stat().st_size
        if is_whole and _code(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR):
            return "mode=ro&immutable=1"
    except sqlite3.DatabaseError:
        pass  # What is wrong with it is told where it is opened.
    return "mode=ro"


def _connected(path: Path, mode: str) -> Database:
    return sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=30.0)


def _copied_to_memory(db: Database) -> Database:
    """What a database holds, in one that may be changed; the first one is closed."""
    copy = sqlite3.connect(":memory:")
    with closing(db):
        db.backup(copy)
    return copy


def copied(db: Database, file: Path) -> None:
    """Put a whole copy of what a database holds into a new file.

    Raises:
        OSError: it cannot be written.
    """
    try:
        with closing(sqlite3.connect(file)) as copy:
            db.backup(copy)
    except sqlite3.Error as error:
        raise OSError(str(error)) from None


@contextmanager
def writing(db: Database, path: Path) -> Iterator[None]:
    """One transaction; trouble with the disk becomes an error that says so.

    A file that was removed can be written as long as it is open, and nobody would ever read it.
    """
    if not path.exists():
        raise OutputError(
            f"{path}: has been removed while this ran",
            "the same command begins anew",
        )
    try:
        with db:
            yield
    except sqlite3.OperationalError as error:
        raise _unwritable(path, error) from None
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        raise _damaged(path, str(error)) from None


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Damage that is found while rows are read becomes an error that says so."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise _unreadable(path, error) from None
    except sqlite3.DatabaseError as error:
        raise _damaged(path, str(error)) from None


def require_sound(db: Database, path: Path) -> None:
    """Raises `DamagedError` where a page of the file is not as SQLite wrote it."""
    verdict = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    if verdict != "ok":
        raise _damaged(path, verdict)


def compact(db: Database, path: Path) -> None:
    """Gives what was deleted back to the disk, which needs room for another copy meanwhile."""
    try:
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError as error:
        raise _unwritable(path, error) from None


def _check(db: Database, path: Path, schema: Schema) -> None:
    version = _version(db)
    application = int(db.execute("PRAGMA application_id").fetchone()[0])
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    is_ours = application == schema.application and (version > 0 or not tables)
    if tables and not is_ours:
        raise OutputError(f"{path} is a database of something else", "choose another file")
    if version > len(schema.migrations):
        raise OutputError(
            f"{path} was written by a newer tilefarm (schema {version})",
            "update tilefarm, or choose another one",
        )


def migrate(db: Database, schema: Schema) -> None:
    """Applies what is missing, each step whole or not at all."""
    version = _version(db)
    if not version:
        db.execute(f"PRAGMA application_id = {schema.application}")
    for step, script in enumerate(schema.migrations[version:], start=version + 1):
        db.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {step}; COMMIT;")


def _version(db: Database) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & _PRIMARY_CODE


def _unreadable(path: Path, error: sqlite3.OperationalError) -> OutputError:
    return _failed(f"cannot read {path}: {error}", error, "see that it can be read")


def _unwritable(path: Path, error: sqlite3.OperationalError) -> OutputError:
    hint = "see that the file can be written, or choose another folder"
    return _failed(f"cannot write {path}: {error}", error, hint)


def _failed(what: str, error: sqlite3.OperationalError, hint: str) -> OutputError:
    if _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return DiskError(what, "see that the disk has space; the same command then goes on")
    return OutputError(what, hint)


def _damaged(path: Path, reason: str) -> DamagedError:
    return DamagedError(
        f"{path} is damaged: {reason}", "move it away to begin anew, or restore a copy of it"
    )
