"""Schedules that were measured once, in one SQLite file for a user, a team or a farm.

Runs add what ended well, later ones begin with the best of it. A record is kept by its target,
workload and schedule; measured again, the later one stays. So files merge in any order to the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tilefarm.closing import Closing
from tilefarm.digest import Digest, canonical_json
from tilefarm.documents import decoded
from tilefarm.errors import OutputError
from tilefarm.measurement import DeviceClock, Trial, WallTime
from tilefarm.workload import Workload

from tuner.database import DamagedError, Schema, opened, writing

SCHEMA: Final = 1
"""Of a record as JSON."""
_LONGEST: Final = float(1 << 63)
"""Cycles or seconds; a counter of cycles has 64 bits."""
_LATEST: Final = 253_402_300_800.0
"""Wall seconds at the end of the year 9999, the last one that has a date."""
_APPLICATION: Final = 0x746C6673
_FILE_SCHEMA: Final = Schema(
    (
        """
        CREATE TABLE schedules (
            target TEXT NOT NULL,
            workload TEXT NOT NULL,
            trace TEXT NOT NULL,
            clock TEXT NOT NULL,
            cost REAL NOT NULL CHECK (cost > 0),
            ended REAL NOT NULL,
            record TEXT NOT NULL,
            PRIMARY KEY (target, workload, trace, clock)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX cheapest ON schedules (target, workload, clock, cost);
        """,
    ),
    application=_APPLICATION,
)
_INSERT: Final = """
    INSERT INTO schedules (target, workload, trace, clock, cost, ended, record)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET cost = excluded.cost, ended = excluded.ended, record = excluded.record
    WHERE (excluded.ended, excluded.record) > (ended, record)
"""
_PRUNE: Final = """
    DELETE FROM schedules WHERE (target, workload, trace, clock) IN (
        SELECT target, workload, trace, clock FROM (
            SELECT *, row_number() OVER (
                PARTITION BY target, workload, clock ORDER BY cost, trace
            ) AS place FROM schedules
        ) WHERE place > ?
    )
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRecord:
    """A schedule that a device has run rightly, and what it took.

    Attributes:
        target, target_name: what it was compiled for.
        trace: the digest of the schedule; it says whether the point still means the same.
        point: the values of the space's tunables, sorted by name.
        cycles, wall_time: one of them.
        device: that measured it.
        version: of tilefarm, as it was then.
        ended: when, in wall seconds.
    """

    target: Digest
    target_name: str
    workload: Workload
    trace: Digest
    point: tuple[tuple[str, int], ...]
    cycles: int | None = None
    wall_time: WallTime | None = None
    device: str = ""
    version: str = ""
    ended: float = 0.0

    def __post_init__(self) -> None:
        if (self.cycles is None) == (self.wall_time is None):
            raise ValueError("either cycles or a wall time must be there")
        if not 0 < self.cost < _LONGEST or not 0 <= self.ended < _LATEST:
            raise ValueError(f"it took {self.cost:g} and ended at {self.ended:g}")

    @classmethod
    def of_trial(
        cls,
        trial: Trial,
        workload: Workload,
        *,
        target: Digest,
        target_name: str,
        version: str = "",
    ) -> ScheduleRecord:
        """What a trial that ended well has measured: in cycles where its device counts them."""
        return cls(
            target=target,
            target_name=target_name,
            workload=workload,
            trace=trial.trace,
            point=trial.point,
            cycles=trial.cycles or None,
            wall_time=None if trial.cycles else trial.wall_time,
            device=trial.device,
            version=version,
            ended=max((end for _, _, end in trial.spans), default=0.0),
        )

    @property
    def clock(self) -> DeviceClock:
        return DeviceClock.SECONDS if self.cycles is None else DeviceClock.CYCLES

    @property
    def cost(self) -> float:
        """Cycles, or the median's seconds."""
        if self.cycles is not None:
            return float(self.cycles)
        return 0.0 if self.wall_time is None else self.wall_time.median_seconds

    def to_json(self) -> str:
        """One line of canonical JSON."""
        time = None if self.wall_time is None else asdict(self.wall_time)
        return canonical_json(
            {
                "schema": SCHEMA,
                "target": self.target.hex,
                "target_name": self.target_name,
                "workload": json.loads(self.workload.to_json()),
                "trace": self.trace.hex,
                "point": dict(self.point),
                "cycles": self.cycles,
                "wall_time": time,
                "device": self.device,
                "version": self.version,
                "ended": self.ended,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> ScheduleRecord:
        """What `to_json` wrote.

        Raises:
            ValueError: it is no record, or one of a newer schema; why.
        """
        document = decoded(text)
        if not isinstance(document, dict) or "schema" not in document:
            raise ValueError("not a schedule that tilefarm exported")
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']}, this version reads {SCHEMA}")
        try:
            return _record(document)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"not a whole record: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWorkload:
    """What is known of one workload on one target by one clock."""

    best: ScheduleRecord
    schedules: int


class ScheduleStore(Closing):
    """The records of one file; any number of processes may read and write it at a time.

    A context manager.

    Args:
        path: the file; a writer makes it.
        read_only: nothing is made or changed.

    Raises:
        OutputError: it is no such file, damaged, of a newer version, or cannot be opened.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        try:
            self._db = opened(path, _FILE_SCHEMA, read_only=read_only)
        except DamagedError as error:  # Whose it is nobody knows: it is not to be moved away.
            raise OutputError(error.what, "choose another file, or restore a copy of it") from None

    def close(self) -> None:
        """Lets go of the file. Closing twice is closing once."""
        self._db.close()

    def add(self, records: Iterable[ScheduleRecord]) -> int:
        """Keeps records, all or none of them; how many were new or later than what was there."""
        with writing(self._db, self.path):
            return sum(self._db.execute(_INSERT, _row(record)).rowcount for record in records)

    def prune(self, keep: int) -> int:
        """Drops all but the best few of each workload; how many."""
        with writing(self._db, self.path):
            return self._db.execute(_PRUNE, (keep,)).rowcount

    def records(
        self, target: Digest | None = None, workload: Digest | None = None
    ) -> Iterator[ScheduleRecord]:
        """Those of a target and a workload, or of all; of each the best first."""
        wanted = {"target": target, "workload": workload}
        given = {name: digest.hex for name, digest in wanted.items() if digest is not None}
        where = " AND ".join(["TRUE", *(f"{name} = ?" for name in given)])
        rows = self._db.execute(
            f"SELECT record FROM schedules WHERE {where}"
            " ORDER BY target, workload, clock, cost, trace",
            (*given.values(),),
        )
        for (record,) in rows:
            yield self._read(record)

    def workloads(self, target: Digest | None = None) -> list[StoredWorkload]:
        """What is known, of one target or all, by the names of targets and workloads."""
        where, values = ("", ()) if target is None else ("WHERE target = ?", (target.hex,))
        rows = self._db.execute(
            "SELECT record, schedules FROM (SELECT *,"
            " count(*) OVER (PARTITION BY target, workload, clock) AS schedules,"
            " row_number() OVER (PARTITION BY target, workload, clock ORDER BY cost, trace)"
            f" AS place FROM schedules {where}) WHERE place = 1 ORDER BY target, workload, clock",
            values,
        )
        found = [
            StoredWorkload(best=self._read(record), schedules=schedules)
            for record, schedules in rows
        ]
        return sorted(found, key=lambda each: (each.best.target_name, each.best.workload.name))

    def _read(self, text: str) -> ScheduleRecord:
        """A record of the file.

        Raises:
            OutputError: another version wrote it, or nobody did.
        """
        try:
            return ScheduleRecord.from_json(text)
        except ValueError as error:
            raise OutputError(
                f"{self.path}: holds a record that cannot be read: {error}",
                "update tilefarm, or choose another file",
            ) from None

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM schedules").fetchone()[0])


def _row(record: ScheduleRecord) -> tuple[object, ...]:
    return (
        record.target.hex,
        record.workload.digest.hex,
        record.trace.hex,
        record.clock.value,
        record.cost,
        record.ended,
        record.to_json(),
    )


def _record(document: Mapping[str, Any]) -> ScheduleRecord:
    point, cycles, time = document["point"], document["cycles"], document["wall_time"]
    if not all(type(value) is int for value in (*point.values(), cycles or 0)):
        raise ValueError("cycles or a value of the point is no integer")
    return ScheduleRecord(
        target=Digest(document["target"]),
        target_name=str(document["target_name"]),
        workload=Workload.from_json(json.dumps(document["workload"])),
        trace=Digest(document["trace"]),
        point=tuple(sorted((str(name), value) for name, value in point.items())),
        cycles=cycles,
        wall_time=None if time is None else WallTime(**time),
        device=str(document["device"]),
        version=str(document["version"]),
        ended=float(document["ended"]),
    )
