"""The records of a tuning: every run and every trial, in one SQLite file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from tilefarm.closing import Closing
from tilefarm.digest import Digest, canonical_json
from tilefarm.measurement import DeviceClock, Status, Trial, WallTime

from tuner.spare import Spare
from tuner.store_file import DamagedError, Database, locked, opened, writing

_COLUMNS: Final = (
    "workload, trace, point, status, cycles, seconds, artifact, device, why, proposer, spans, "
    "wall_time"
)
_TRIAL_VALUES: Final = 1 + len(_COLUMNS.split(","))
"""The run that a trial is of, and what it is."""
_Change: TypeAlias = tuple[str, tuple[object, ...]]
_STATEMENTS: Final = {
    "run": "INSERT INTO runs (run, begun, description) VALUES (?, ?, ?)",
    "end": "UPDATE runs SET ended = ?, outcome = ? WHERE run = ?",
    "trial": f"INSERT INTO trials (run, {_COLUMNS}) VALUES ({', '.join('?' * _TRIAL_VALUES)}) "
    "ON CONFLICT (workload, trace) DO NOTHING",
    "held": "INSERT INTO unconfirmed (trial, device, fence) "
    "SELECT trial, ?, ? FROM trials WHERE workload = ? AND trace = ?",
    "confirmed": "DELETE FROM unconfirmed WHERE device = ?",
    "doubt": "DELETE FROM trials WHERE workload = ? AND trace = ?",
}
"""Every change of the records; also what the lines of a copy say."""
_COSTS: Final = {
    DeviceClock.CYCLES: "cycles",
    DeviceClock.SECONDS: "wall_time ->> 'median_seconds'",
}
"""What a trial is judged by, as an expression of its columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run of the tuner on this file. Times are wall seconds; `ended` is None while it runs."""

    run: str
    begun: float
    description: Mapping[str, object]
    ended: float | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Voucher:
    """Who has to confirm a trial: the device that measured it, and under which lease of it.

    Attributes:
        device: its name on its tracker.
        fence: of the lease; a device's fences only grow.
    """

    device: str
    fence: int


class Store(Closing):
    """One writer and any number of readers at a time; a trial is kept when `insert` returns.

    A context manager. Opening checks the file, brings it to this version's schema, and for a writer
    takes a lock that ends with the process. A writer keeps a copy beside the file (`Spare`), and
    goes back to it where the file is damaged.

    Attributes:
        restored: what was damaged and is back, in words; empty if nothing was.

    Args:
        path: the file; a writer makes it.
        read_only: open for reading only, without the lock.

    Raises:
        OutputError: not a file of tilefarm's, damaged, from a newer version, cannot be written, or
            another run is writing to it.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._lock = None if read_only else locked(path)
        self._spare = Spare(path)
        self.restored = ""
        try:
            self._db = opened(path, read_only=True) if read_only else self._opened()
        except BaseException:
            self._release()
            raise
        if not read_only:
            self._spare.begin(self._db)

    # -- writing -----------------------------------------------------------------------------------

    def begin_run(self, run: str, description: Mapping[str, object], *, begun: float) -> None:
        """Notes that a run begins. Trials belong to runs, so this comes first."""
        self._change(("run", (run, begun, canonical_json(dict(description)))))

    def end_run(self, run: str, outcome: str, *, ended: float) -> None:
        """Notes how a run ended; one that was killed has no end."""
        self._change(("end", (ended, outcome, run)))

    def insert(self, trial: Trial, *, run: str, unconfirmed: Voucher | None = None) -> bool:
        """Keeps a trial. False, and nothing changes, if this workload and trace have one already.

        Args:
            unconfirmed: who may still say that it was wrong, until `confirm`.

        Raises:
            ValueError: a trial that did not end well claims a time.
        """
        timed = trial.cycles is not None or trial.wall_time is not None
        if timed and trial.status is not Status.OK:
            raise ValueError(f"a trial that ended as {trial.status.value} has no time")
        key = (trial.workload.hex, trial.trace.hex)
        held: list[_Change] = []
        if unconfirmed is not None:
            held = [("held", (unconfirmed.device, unconfirmed.fence, *key))]
        return self._change(("trial", (run, *_row(trial))), *held) == 1

    def confirm(self, device: str) -> None:
        """A device was right until now: nobody doubts its trials any more."""
        self._change(("confirmed", (device,)))

    def doubt(self, trial: Trial, why: str) -> bool:
        """Moves a trial to the suspects: its device was not right. False if it is not kept here.

        Its workload and trace have none any more, and may get another one.
        """
        return self._change(("doubt", (why, trial.workload.hex, trial.trace.hex))) == 1

    # -- reading -----------------------------------------------------------------------------------

    def suspects(self) -> list[tuple[Trial, str]]:
        """Trials that were taken back, in order, each with the reason."""
        rows = self._db.execute(f"SELECT doubt, {_COLUMNS} FROM suspects ORDER BY suspect")
        return [(_trial(row), doubt) for doubt, *row in rows]

    def to_measure_again(self, workload: Digest) -> list[Trial]:
        """Trials of a workload that were taken back, and have no other in their place yet."""
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM suspects WHERE workload = ? AND NOT EXISTS (SELECT * FROM"
            " trials WHERE trials.workload = suspects.workload AND trials.trace = suspects.trace)"
            " GROUP BY trace ORDER BY min(suspect)",
            (workload.hex,),
        )
        return [_trial(row) for row in rows]

    def unconfirmed(self) -> list[tuple[Trial, Voucher]]:
        """Trials that may still turn out to be wrong, in the order in which they ended."""
        rows = self._db.execute(
            f"SELECT unconfirmed.device, fence, {_named('trials', _COLUMNS)} "
            "FROM unconfirmed JOIN trials USING (trial) ORDER BY trial"
        )
        return [(_trial(row), Voucher(device, fence)) for device, fence, *row in rows]

    def trials(self, workload: Digest | None = None) -> list[Trial]:
        """Trials of one workload, or all, in the order in which they ended."""
        where, values = _of(workload)
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM trials {where} ORDER BY trial", values)
        return [_trial(row) for row in rows]

    def best(self, workload: Digest, clock: DeviceClock = DeviceClock.CYCLES) -> Trial | None:
        """The fastest good trial of a workload by that clock; the earliest of equals."""
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM trials WHERE workload = ? AND {_COSTS[clock]} > 0 "
            f"ORDER BY {_COSTS[clock]}, trial LIMIT 1",
            (workload.hex,),
        ).fetchone()
        return None if row is None else _trial(row)

    def count(self, workload: Digest | None = None) -> int:
        """How many trials there are."""
        where, values = _of(workload)
        return int(self._db.execute(f"SELECT count(*) FROM trials {where}", values).fetchone()[0])

    def statuses(self, workload: Digest | None = None) -> dict[Status, int]:
        """How many trials ended in each way; ways in which none ended are absent."""
        where, values = _of(workload)
        rows = self._db.execute(
            f"SELECT status, count(*) FROM trials {where} GROUP BY status", values
        )
        return {Status(status): count for status, count in rows}

    def failures(self, workload: Digest | None = None) -> dict[Status, int]:
        """As `statuses`, without the good ones."""
        return {s: n for s, n in self.statuses(workload).items() if s is not Status.OK}

    def runs(self) -> list[RunRecord]:
        """All runs in the order in which they began."""
        rows = self._db.execute(
            "SELECT run, begun, description, ended, outcome FROM runs ORDER BY begun, run"
        )
        return [
            RunRecord(
                run=run,
                begun=begun,
                description=json.loads(description),
                ended=ended,
                outcome=outcome or "",
            )
            for run, begun, description, ended, outcome in rows
        ]

    # -- life --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Lets go of the file and of the lock. Closing twice is closing once."""
        self._db.close()
        self._spare.close()
        self._release()

    def _opened(self) -> Database:
        """The file, or its copy in its place."""
        try:
            return opened(self._path, read_only=False)
        except DamagedError as error:
            if not self._spare.exists:
                raise
            self._spare.put_back()
            db = opened(self._path, read_only=False)
            with writing(db, self._path):
                for what, values in self._spare.changes():
                    _apply(db, what, values)
            kept = self._spare.damaged.name
            self.restored = f"{error.what}; it is back from its copy, and kept as {kept}"
            return db

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _change(self, first: _Change, *more: _Change) -> int:
        """Make a change for good, and, if it was about any rows, more with it; these rows."""
        with writing(self._db, self._path):
            rows = _apply(self._db, *first)
            made = (first, *(more if rows else ()))
            for change in made[1:]:
                _apply(self._db, *change)
        for what, values in made:
            self._spare.note(what, *values)
        return rows


def _apply(db: Database, what: str, values: Sequence[Any]) -> int:
    """One change, within a transaction; the rows that it was about."""
    if what == "doubt":
        db.execute(
            f"INSERT INTO suspects (run, {_COLUMNS}, doubt) SELECT run, {_COLUMNS}, ? "
            "FROM trials WHERE workload = ? AND trace = ?",
            values,
        )
        _, *values = values
    if what == "trial":  # Lines of a copy that an older version wrote lack the last columns.
        values = (*values, *(None,) * (_TRIAL_VALUES - len(values)))
    return db.execute(_STATEMENTS[what], values).rowcount


def _named(table: str, columns: str) -> str:
    return ", ".join(f"{table}.{column}" for column in columns.split(", "))


def _of(workload: Digest | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if workload is None else ("WHERE workload = ?", (workload.hex,))


def _row(trial: Trial) -> tuple[object, ...]:
    return (
        trial.workload.hex,
        trial.trace.hex,
        canonical_json(trial.point),
        trial.status.value,
        trial.cycles,
        canonical_json(trial.seconds),
        None if trial.artifact is None else trial.artifact.hex,
        trial.device,
        trial.why.encode(errors="replace").decode(),
        trial.proposer,
        canonical_json(trial.spans),
        None if trial.wall_time is None else canonical_json(asdict(trial.wall_time)),
    )


def _trial(row: Sequence[Any]) -> Trial:
    workload, trace, point, status, cycles, seconds, *rest = row
    artifact, device, why, proposer, spans, wall_time = rest
    return Trial(
        workload=Digest(workload),
        trace=Digest(trace),
        point=tuple((str(name), int(value)) for name, value in json.loads(point)),
        status=Status(status),
        cycles=cycles,
        seconds=tuple(map(float, json.loads(seconds))),
        artifact=None if artifact is None else Digest(artifact),
        device=device,
        why=why,
        proposer=proposer,
        spans=tuple((str(s), float(b), float(e)) for s, b, e in json.loads(spans)),
        wall_time=None if wall_time is None else WallTime(**json.loads(wall_time)),
    )
