"""The records of a tuning: every run, trial and run-off, in one SQLite file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tilefarm.closing import Closing
from tilefarm.digest import Digest, canonical_json
from tilefarm.measurement import DeviceClock, Status, Trial, WallTime

from tuner.backup import Backup
from tuner.database import DamagedError, Database, locked, opened, writing
from tuner.run_off import RunOff
from tuner.trial_schema import TRIAL_SCHEMA

_COLUMNS: Final = (
    "workload, trace, point, status, cycles, seconds, artifact, device, why, proposer, spans, "
    "wall_time"
)
_TRIAL: Final = f"run, {_COLUMNS}, search, number"
"""The run that a trial is of, what it is, and its place."""
_TRIAL_VALUES: Final = len(_TRIAL.split(","))
_STATEMENTS: Final = {
    "run": "INSERT INTO runs (run, begun, description) VALUES (?, ?, ?)",
    "end": "UPDATE runs SET ended = ?, outcome = ? WHERE run = ?",
    "trial": f"INSERT INTO trials ({_TRIAL}) VALUES ({', '.join('?' * _TRIAL_VALUES)}) "
    "ON CONFLICT (workload, trace) DO NOTHING",
    "run_off": "INSERT INTO run_offs (workload, device, times) VALUES (?, ?, ?)",
    "pace": "INSERT INTO paces (device, seconds) VALUES (?, ?) ON CONFLICT (device) DO NOTHING",
}
"""Every change of the records; also what the lines of a copy say."""

_ORDER: Final = "search, number, trial"
"""As they were asked for; those of versions that kept no order come first, as they ended."""
_COSTS: Final = {
    DeviceClock.CYCLES: "cycles",
    DeviceClock.SECONDS: "wall_time ->> 'median_seconds'",
}
"""What a trial is judged by, as an expression of its columns."""


@dataclass(frozen=True, slots=True)
class TrialPosition:
    """Where a trial stands: runs that go on with one another are one search, which asks in order.

    Attributes:
        search: counts 1, 2, 3 … in one file.
        number: counts 1, 2, 3 … in one search.
    """

    search: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run of the tuner on this file. Times are wall seconds; `ended` is None while it runs.

    `trials` is how many of its trials are kept.
    """

    run: str
    begun: float
    description: Mapping[str, object]
    ended: float | None = None
    outcome: str = ""
    trials: int = 0


class TrialStore(Closing):
    """One writer and any number of readers at a time; a trial is kept when `insert` returns.

    A context manager. Opening checks the file, brings it to this version's schema, and for a writer
    takes a lock that ends with the process. A writer keeps a copy beside the file (`Backup`), and
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
        self._backup = Backup(path)
        self.restored = ""
        try:
            self._db = opened(path, TRIAL_SCHEMA, read_only=True) if read_only else self._opened()
        except BaseException:
            self._release()
            raise
        if not read_only:
            self._backup.begin(self._db)

    # -- writing -----------------------------------------------------------------------------------

    def begin_run(self, run: str, description: Mapping[str, object], *, begun: float) -> None:
        """Notes that a run begins. Trials belong to runs, so this comes first."""
        self._change("run", (run, begun, canonical_json(dict(description))))

    def end_run(self, run: str, outcome: str, *, ended: float) -> None:
        """Notes how a run ended; one that was killed has no end."""
        self._change("end", (ended, outcome, run))

    def insert(self, trial: Trial, *, run: str, place: TrialPosition | None = None) -> bool:
        """Keeps a trial. False, and nothing changes, if this workload and trace have one already.

        Args:
            place: where it stands in the order in which candidates are asked for.

        Raises:
            ValueError: a trial that did not end well claims a time.
        """
        timed = trial.cycles is not None or trial.wall_time is not None
        if timed and trial.status is not Status.OK:
            raise ValueError(f"a trial that ended as {trial.status.value} has no time")
        where = (None, None) if place is None else (place.search, place.number)
        return self._change("trial", (run, *_row(trial), *where)) == 1

    def insert_run_off(self, run_off: RunOff) -> None:
        """Keeps how finalists compared; from now on it is the one of its workload."""
        times = {
            trace.hex: [asdict(time) for time in rounds] for trace, rounds in run_off.times.items()
        }
        self._change("run_off", (run_off.workload.hex, run_off.device, canonical_json(times)))

    def insert_pace(self, device: str, seconds: float) -> None:
        """Keeps what the known kernel takes on a device; nothing changes if that is known."""
        self._change("pace", (device, seconds))

    # -- reading -----------------------------------------------------------------------------------

    def places(self) -> dict[tuple[Digest, Digest], TrialPosition]:
        """Where trials stand, by workload and trace; those of older versions stand nowhere."""
        rows = self._db.execute(
            "SELECT workload, trace, search, number FROM trials WHERE search IS NOT NULL"
        )
        return {
            (Digest(workload), Digest(t)): TrialPosition(*place) for workload, t, *place in rows
        }

    def trials(self, workload: Digest | None = None) -> list[Trial]:
        """Trials of one workload, or all, in the order in which they were asked for."""
        where, values = _of(workload)
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM trials {where} ORDER BY {_ORDER}", values)
        return [_trial(row) for row in rows]

    def best(self, workload: Digest, clock: DeviceClock = DeviceClock.CYCLES) -> Trial | None:
        """The fastest good trial of a workload by that clock; of equals the first asked for."""
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM trials WHERE workload = ? AND {_COSTS[clock]} > 0 "
            f"ORDER BY {_COSTS[clock]}, {_ORDER} LIMIT 1",
            (workload.hex,),
        ).fetchone()
        return None if row is None else _trial(row)

    def paces(self) -> dict[str, float]:
        """What the known kernel took on each device when its first time was kept."""
        return dict(self._db.execute("SELECT device, seconds FROM paces ORDER BY rowid"))

    def run_off(self, workload: Digest) -> RunOff | None:
        """The last comparison of the workload's finalists; None if there was none."""
        row = self._db.execute(
            "SELECT device, times FROM run_offs WHERE workload = ? ORDER BY run_off DESC LIMIT 1",
            (workload.hex,),
        ).fetchone()
        if row is None:
            return None
        times = {
            Digest(trace): tuple(WallTime(**time) for time in rounds)
            for trace, rounds in json.loads(row[1]).items()
        }
        return RunOff(workload=workload, device=row[0], times=times)

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

    def runs(self) -> list[RunRecord]:
        """All runs in the order in which they began."""
        rows = self._db.execute(
            "SELECT run, begun, description, ended, outcome, (SELECT count(*) FROM trials"
            " WHERE trials.run = runs.run) FROM runs ORDER BY begun, run"
        )
        return [
            RunRecord(
                run=run,
                begun=begun,
                description=json.loads(description),
                ended=ended,
                outcome=outcome or "",
                trials=trials,
            )
            for run, begun, description, ended, outcome, trials in rows
        ]

    # -- life --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Lets go of the file and of the lock. Closing twice is closing once."""
        self._db.close()
        self._backup.close()
        self._release()

    def _opened(self) -> Database:
        """The file, or its copy in its place."""
        try:
            return opened(self._path, TRIAL_SCHEMA, read_only=False)
        except DamagedError as error:
            if not self._backup.exists:
                raise
            self._backup.put_back()
            db = opened(self._path, TRIAL_SCHEMA, read_only=False)
            with writing(db, self._path):
                for what, values in self._backup.changes():
                    _apply(db, what, values)
            kept = self._backup.damaged.name
            self.restored = f"{error.what}; it is back from its copy, and kept as {kept}"
            return db

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _change(self, what: str, values: Sequence[object]) -> int:
        """Make a change for good; the rows that it was about."""
        with writing(self._db, self._path):
            rows = _apply(self._db, what, values)
        self._backup.note(what, *values)
        return rows


def _apply(db: Database, what: str, values: Sequence[Any]) -> int:
    """One change, within a transaction; the rows that it was about."""
    if what not in _STATEMENTS:  # A line of a copy that an older version wrote.
        return 0
    if what == "trial":  # Such a line may lack the last columns.
        values = (*values, *(None,) * (_TRIAL_VALUES - len(values)))
    return db.execute(_STATEMENTS[what], values).rowcount


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
