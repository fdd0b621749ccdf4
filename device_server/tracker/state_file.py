"""What a tracker knows, in an SQLite file, so that it may start again and go on.

Records are kept as they travel: a device as its registration, a lease as the answer to its wish.
Leases come and go often, and each writes two pages: its own, and that of the fence and the time.
Times are those of a clock that ends with the process: only their differences say anything.
"""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from tilefarm.digest import canonical_json
from tilefarm.errors import SettingsError
from tilefarm.rpc import tracker_calls, wire
from tilefarm.rpc.tracker_calls import Register
from tilefarm.watch.log import Log

from device_server.tracker.table_state import AdministrativeState, Holding, TableChanges, TableState

_T = TypeVar("_T")

_VERSION: Final = 4
MOST_LOG_PAGES: Final = 4096
"""Of changes, 16 MiB, before they move from SQLite's log into the file: all calls wait for that."""

_TABLES: Final = ("tracker", "device", "lease", "standing")
_SCHEMA: Final = """
CREATE TABLE tracker (
    one INTEGER PRIMARY KEY CHECK (one = 1), fence INTEGER NOT NULL, seconds REAL NOT NULL
);
CREATE TABLE device (name TEXT PRIMARY KEY, registration BLOB NOT NULL);
CREATE TABLE lease (
    lease_id TEXT PRIMARY KEY,
    acquired BLOB NOT NULL, owner TEXT NOT NULL, user TEXT NOT NULL, request_id TEXT NOT NULL,
    job TEXT NOT NULL, priority INTEGER NOT NULL, until REAL
) WITHOUT ROWID;
CREATE TABLE standing (
    name TEXT PRIMARY KEY, draining TEXT NOT NULL, quarantine TEXT NOT NULL,
    losses INTEGER NOT NULL, lost_by TEXT NOT NULL,
    readmissions INTEGER NOT NULL, readmitting INTEGER NOT NULL
);
PRAGMA user_version = 4;
"""
_STANDING: Final = ":name, :draining, :quarantine, :losses, :lost_by, :readmissions, :readmitting"


class TrackerState:
    """The file of one tracker, for its owner alone: it holds the secrets of devices.

    What was saved survives the death of the process at any moment; of a machine that loses its
    power, all but the last moment.

    Raises:
        SettingsError: it cannot be used, is damaged, or another tracker has it open.
    """

    def __init__(self, path: Path, log: Log) -> None:
        self._log = log
        self._failing = False
        self._pending = _Pending()
        self._fence = 0
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._database = sqlite3.connect(path, timeout=0.5, isolation_level=None)
            self._open()
            self._kept = self._names()
        except OSError as error:
            raise _unusable(path, str(error.strerror), "name a file in your folder") from None
        except (sqlite3.Error, ValueError) as error:
            hint = (
                "stop the tracker that uses it, or move the file away; devices then register anew"
            )
            raise _unusable(path, str(error), hint) from None

    def close(self) -> None:
        self._database.close()

    def load(self) -> TableState:
        """What was saved last."""
        query = self._database.execute
        (fence,) = query("SELECT max(fence) FROM tracker").fetchone()
        (version,) = query("PRAGMA user_version").fetchone()
        since_3 = "job, priority" if version >= 3 else "'', 0"
        left = "SELECT lease_id, until - (SELECT seconds FROM tracker) FROM lease"
        return TableState(
            fence=fence or 0,
            devices=tuple(
                wire.REGISTER.decode(row)
                for (row,) in query("SELECT registration FROM device ORDER BY rowid")
            ),
            leases=tuple(
                sorted(
                    itertools.starmap(
                        _holding,
                        query(f"SELECT acquired, owner, user, request_id, {since_3} FROM lease"),
                    ),
                    key=lambda holding: holding.lease.fence,
                )
            ),
            standings=tuple(
                (name, _standing(*row))
                for name, *row in query("SELECT * FROM standing ORDER BY name")
            ),
            left_seconds=dict(query(f"{left} WHERE until IS NOT NULL")) if version >= 3 else {},
        )

    def save(self, changes: TableChanges) -> None:
        """Keep what has changed; a full disk is told, stops nobody, and is tried again."""
        self._pending.add(changes)
        self._pending.settle(self._kept)
        try:
            with self._transaction():
                self._write()
        except sqlite3.Error as error:
            if not self._failing:
                self._log("state_fails", why=str(error))
            self._failing = True
        else:
            self._fence = self._pending.fence
            self._kept.follow(self._pending)
            self._pending, self._failing = _Pending(), False

    def _names(self) -> _Names:
        query = self._database.execute
        return _Names(
            {name for (name,) in query("SELECT name FROM device")},
            {lease_id for (lease_id,) in query("SELECT lease_id FROM lease")},
            {name for (name,) in query("SELECT name FROM standing")},
        )

    def _open(self) -> None:
        query = self._database.execute
        (version,) = query("PRAGMA user_version").fetchone()
        if version not in range(_VERSION + 1):
            raise ValueError(f"it is of version {version}, not {_VERSION}")
        query("PRAGMA locking_mode = EXCLUSIVE")
        # One file that grows and a wait for the disk now and then, not at every change.
        query("PRAGMA journal_mode = WAL")
        query("PRAGMA synchronous = NORMAL")
        query(f"PRAGMA wal_autocheckpoint = {MOST_LOG_PAGES}")
        query("BEGIN EXCLUSIVE")
        query("COMMIT")
        (verdict,) = query("PRAGMA quick_check").fetchone()
        if verdict != "ok":
            raise ValueError(f"it is damaged: {verdict}")
        if version != _VERSION:
            self._begin_tables(version)

    def _begin_tables(self, version: int) -> None:
        """Make the tables of today; those of an earlier version are read before."""
        with self._transaction():
            if version:
                self._pending.add(TableChanges.of(self.load()))
                for table in _TABLES:
                    self._database.execute(f"DROP TABLE {table}")
            for statement in _SCHEMA.strip().removesuffix(";").split(";"):
                self._database.execute(statement)
            self._write()
        self._pending = _Pending()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of it, or nothing."""
        with self._database:
            self._database.execute("BEGIN")
            yield

    def _write(self) -> None:
        pending, query = self._pending, self._database.execute
        changed = pending.devices or pending.leases or pending.standings
        if pending.fence != self._fence or pending.until or not changed:
            query("REPLACE INTO tracker VALUES (1, ?, ?)", (pending.fence, pending.seconds))
        for name, call in pending.devices.items():
            if call is None:
                query("DELETE FROM device WHERE name = ?", (name,))
            else:
                query("REPLACE INTO device VALUES (?, ?)", (name, wire.REGISTER.encode(call)))
        for lease_id, holding in pending.leases.items():
            if holding is None:
                query("DELETE FROM lease WHERE lease_id = ?", (lease_id,))
            else:
                row = (*_row(lease_id, holding), pending.until.get(lease_id))
                query("REPLACE INTO lease VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        for lease_id, until in pending.until.items():
            if lease_id not in pending.leases:
                query("UPDATE lease SET until = ? WHERE lease_id = ?", (until, lease_id))
        for name, standing in pending.standings.items():
            if standing is None:
                query("DELETE FROM standing WHERE name = ?", (name,))
            else:
                words = {"name": name, "lost_by": canonical_json(standing.lost_by)}
                query(f"REPLACE INTO standing VALUES ({_STANDING})", asdict(standing) | words)


@dataclass(slots=True)
class _Names:
    """Of what is in the file."""

    devices: set[str]
    leases: set[str]
    standings: set[str]

    def follow(self, written: _Pending) -> None:
        """Changes are in the file now."""
        self.devices = _names_after(self.devices, written.devices)
        self.leases = _names_after(self.leases, written.leases)
        self.standings = _names_after(self.standings, written.standings)


def _names_after(names: set[str], changes: Mapping[str, object]) -> set[str]:
    gone = {name for name, change in changes.items() if change is None}
    return (names | changes.keys()) - gone


@dataclass(slots=True)
class _Pending:
    """Changes that are not in the file yet, the latest of everything."""

    fence: int = 0
    devices: dict[str, Register | None] = field(default_factory=dict)
    leases: dict[str, Holding | None] = field(default_factory=dict)
    standings: dict[str, AdministrativeState | None] = field(default_factory=dict)
    until: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, changes: TableChanges) -> None:
        self.fence, self.seconds = changes.fence, changes.seconds
        self.until.update(changes.until)
        self.devices.update(changes.devices)
        self.leases.update(changes.leases)
        self.standings.update(changes.standings)

    def settle(self, kept: _Names) -> None:
        """Forget what came and went while nothing could be written: there is nothing to do."""
        self.devices = _without_passing(self.devices, kept.devices)
        self.leases = _without_passing(self.leases, kept.leases)
        self.standings = _without_passing(self.standings, kept.standings)
        known = kept.leases | self.leases.keys()
        self.until = {name: until for name, until in self.until.items() if name in known}


def _without_passing(changes: dict[str, _T | None], kept: set[str]) -> dict[str, _T | None]:
    return {name: it for name, it in changes.items() if it is not None or name in kept}


def _standing(
    draining: str,
    quarantine: str,
    losses: int,
    lost_by: str = "[]",
    readmissions: int = 0,
    readmitting: int = 0,
) -> AdministrativeState:
    """A row as a record; the first version did not say who had lost a device."""
    return AdministrativeState(
        draining=draining,
        quarantine=quarantine,
        losses=losses,
        lost_by=tuple(map(str, json.loads(lost_by))),
        readmissions=readmissions,
        readmitting=bool(readmitting),
    )


def _row(lease_id: str, holding: Holding) -> tuple[str, bytes, str, str, str, str, int]:
    acquired = wire.ACQUIRED.encode(tracker_calls.Acquired(lease=holding.lease))
    whose = holding.owner, holding.user, holding.request_id
    return lease_id, acquired, *whose, holding.job, holding.priority


def _holding(
    acquired: bytes, owner: str, user: str, request_id: str, job: str, priority: int
) -> Holding:
    lease = wire.ACQUIRED.decode(acquired).lease
    assert lease is not None
    return Holding(
        lease=lease,
        owner=owner,
        user=user,
        request_id=request_id,
        job=job,
        priority=priority,
    )


def _unusable(path: Path, why: str, hint: str) -> SettingsError:
    return SettingsError(f"{path}: cannot keep the tracker's state: {why}", hint)
