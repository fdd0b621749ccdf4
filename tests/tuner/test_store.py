"""The records: kept once, read while written, refused when damaged."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.messages.records import wall_times
from kit.search.toy_spaces import trial_of
from tilefarm.digest import Digest
from tilefarm.errors import DiskError, OutputError
from tilefarm.measurement import DeviceClock, Status, Trial, WallTime

from tuner.database import writing
from tuner.run_off import RunOff
from tuner.trial_schema import TRIAL_SCHEMA
from tuner.trial_store import TrialPosition, TrialStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[TrialStore]:
    with TrialStore(path) as opened:
        opened.begin_run("run-1", {"seed": 3}, begun=100.0)
        yield opened


texts = st.text(st.characters(codec="utf-8"))
digests = st.binary(min_size=1, max_size=4).map(Digest.of)
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    status = draw(st.sampled_from(list(Status)))
    return Trial(
        workload=draw(digests),
        trace=draw(digests),
        point=tuple(draw(st.dictionaries(st.text(), st.integers(-(2**62), 2**62))).items()),
        status=status,
        cycles=draw(st.none() | st.integers(0, 2**62)) if status is Status.OK else None,
        wall_time=draw(st.none() | wall_times()) if status is Status.OK else None,
        seconds=tuple(draw(st.lists(finite, max_size=3))),
        artifact=draw(st.none() | digests),
        device=draw(texts),
        why=draw(texts),
        proposer=draw(st.sampled_from(["guided", "random"])),
        spans=tuple(draw(st.lists(st.tuples(st.just("run"), finite, finite), max_size=2))),
    )


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(trials(), max_size=6))
def test_trials_come_back_as_they_went_in(
    tmp_path_factory: pytest.TempPathFactory, some: list[Trial]
) -> None:
    with TrialStore(tmp_path_factory.mktemp("store") / "r.sqlite") as store:
        store.begin_run("r", {}, begun=0.0)
        kept: dict[tuple[Digest, Digest], Trial] = {}
        for trial in some:
            key = (trial.workload, trial.trace)
            assert store.insert(trial, run="r") == (key not in kept)
            kept.setdefault(key, trial)
        assert store.trials() == list(kept.values())


def test_a_trial_is_kept_once(store: TrialStore) -> None:
    first = trial_of({"x": 1}, cycles=50)
    assert store.insert(first, run="run-1")
    assert not store.insert(trial_of({"x": 1}, cycles=40), run="run-1")
    assert store.trials(first.workload) == [first]
    assert store.count() == 1


def test_trials_come_in_the_order_in_which_they_were_asked_for(path: Path) -> None:
    first, *rest = [trial_of({"x": x}, cycles=50) for x in range(5)]
    places = [TrialPosition(1, 2), TrialPosition(2, 1), TrialPosition(1, 1), TrialPosition(2, 10)]
    with TrialStore(path) as store:
        store.begin_run("r", {}, begun=0.0)
        store.insert(rest[3], run="r", place=places[3])
        store.insert(first, run="r")
        for trial, place in zip(rest[:3], places[:3], strict=True):
            store.insert(trial, run="r", place=place)
    with TrialStore(path) as store:
        assert store.trials() == [first, rest[2], rest[0], rest[1], rest[3]]
        assert store.best(first.workload) == first
        assert store.places() == {
            (trial.workload, trial.trace): place for trial, place in zip(rest, places, strict=True)
        }


def test_words_that_are_not_unicode_are_kept_readable(store: TrialStore) -> None:
    store.insert(replace(trial_of({"x": 1}, Status.RUN_CRASH), why="bad \udcff byte"), run="run-1")
    assert store.trials()[0].why == "bad ? byte"


def test_the_best_and_how_many_failed(store: TrialStore) -> None:
    good = [trial_of({"x": x}, cycles=100 - x % 3) for x in range(6)]
    bad = [trial_of({"x": x}, Status.RUN_CRASH) for x in range(6, 9)]
    other = trial_of({"x": 99}, cycles=1, task="other")
    for trial in [*good, *bad, other]:
        store.insert(trial, run="run-1")
    assert store.best(good[0].workload) == good[2]
    assert store.best(Digest.of(b"unknown")) is None
    assert store.statuses() == {Status.OK: 7, Status.RUN_CRASH: 3}
    assert store.statuses(good[0].workload) == {Status.OK: 6, Status.RUN_CRASH: 3}
    assert store.count(other.workload) == 1


def timed(x: int, seconds: float) -> Trial:
    """A trial on a device that counts nothing."""
    time = WallTime(
        minimum_seconds=seconds / 2,
        p10_seconds=seconds,
        median_seconds=seconds,
        p90_seconds=seconds,
        calls=9,
        regions=9,
    )
    return replace(trial_of({"x": x}), wall_time=time)


def test_the_best_of_a_clock_is_not_compared_with_those_of_the_other(store: TrialStore) -> None:
    trials = [timed(1, 3e-6), timed(2, 1e-6), timed(3, 2e-6), trial_of({"x": 4}, cycles=50)]
    nothing = trial_of({"x": 5}, cycles=0)
    for trial in [nothing, *trials, trial_of({"x": 6})]:
        store.insert(trial, run="run-1")
    assert store.best(nothing.workload) == trials[3]
    assert store.best(nothing.workload, DeviceClock.SECONDS) == trials[1]


def test_the_last_run_off_of_a_workload_is_kept(path: Path) -> None:
    trial = timed(1, 1e-6)
    time = trial.wall_time
    assert time is not None

    def of(device: str, rounds: int) -> RunOff:
        times = {trial.trace: (time,) * rounds, Digest.of(b"out of it"): ()}
        return RunOff(workload=trial.workload, device=device, times=times)

    with TrialStore(path) as store:
        store.insert_run_off(of("board1", 2))
        store.insert_run_off(of("board2", 3))
        assert store.run_off(Digest.of(b"another")) is None
    content = path.read_bytes()
    with TrialStore(path, read_only=True) as store:
        assert store.run_off(trial.workload) == of("board2", 3)
    path.write_bytes(content[: len(content) // 2])
    with TrialStore(path) as store:
        assert "is damaged" in store.restored
        assert store.run_off(trial.workload) == of("board2", 3)


def test_the_first_pace_of_a_device_is_kept(path: Path) -> None:
    first = {"cpu1": 2e-5, "cpu0": 1e-5}
    with TrialStore(path) as store:
        assert store.paces() == {}
        for device, seconds in (*first.items(), ("cpu0", 3e-5)):
            store.insert_pace(device, seconds)
    content = path.read_bytes()
    with TrialStore(path, read_only=True) as store:
        assert list(store.paces().items()) == list(first.items())
    path.write_bytes(content[: len(content) // 2])
    with TrialStore(path) as store:
        assert "is damaged" in store.restored
        assert store.paces() == first


def test_a_failure_has_no_time(store: TrialStore) -> None:
    for wrong in (trial_of({"x": 1}, cycles=10**9), timed(1, 1e9)):
        with pytest.raises(ValueError, match="run_crash"):
            store.insert(replace(wrong, status=Status.RUN_CRASH), run="run-1")


def of_an_older_version(path: Path, trial: Trial, unconfirmed: Trial) -> None:
    """A file as version 3 wrote it, with a copy and a line beside it."""
    with TrialStore(path) as store:
        store.begin_run("r", {}, begun=0.0)
        store.insert(unconfirmed, run="r")
    with TrialStore(path) as store:
        store.insert(trial, run="r")
    copy = path.with_name(path.name + ".copy")
    for each in (path, copy):
        with sqlite3.connect(each) as database:
            for column in ("wall_time", "search", "number"):
                database.execute(f"ALTER TABLE trials DROP COLUMN {column}")
            for table in ("run_offs", "paces"):
                database.execute(f"DROP TABLE {table}")
            database.executescript("".join(TRIAL_SCHEMA.migrations[1:3]))
            database.execute("INSERT INTO unconfirmed VALUES (1, 'sim0', 7)")
            database.execute("PRAGMA user_version = 3")
        database.close()
    since = path.with_name(path.name + ".since")
    lines = [json.loads(line) for line in since.read_text().splitlines()]
    old = [row[:-3] if row[0] == "trial" else row for row in lines]
    held = ["held", "sim0", 7, trial.workload.hex, trial.trace.hex]
    since.write_text("".join(json.dumps(row) + "\n" for row in (*old, held)))


def test_a_file_of_an_older_version_is_read_and_written(path: Path) -> None:
    trial = trial_of({"x": 1}, cycles=9)
    of_an_older_version(path, trial, trial_of({"x": 3}, cycles=9))
    before = path.read_bytes()
    with TrialStore(path, read_only=True) as store:
        assert store.trials() == [trial], "what was not confirmed is measured again"
    assert path.read_bytes() == before
    with TrialStore(path) as store:
        store.insert_pace("cpu0", 1e-5)
        assert store.insert(timed(2, 1e-6), run="r")
        assert store.trials() == [trial, timed(2, 1e-6)]


def test_a_damaged_file_of_an_older_version_comes_back_from_its_copy(path: Path) -> None:
    trial = trial_of({"x": 1}, cycles=9)
    of_an_older_version(path, trial, trial_of({"x": 3}, cycles=9))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with TrialStore(path) as store:
        assert "is damaged" in store.restored
        assert store.trials() == [trial]


def test_runs_are_listed_with_their_end(store: TrialStore) -> None:
    store.begin_run("run-2", {"seed": 4}, begun=200.0)
    store.end_run("run-1", "killed", ended=150.0)
    first, second = store.runs()
    assert (first.run, first.outcome, first.ended) == ("run-1", "killed", 150.0)
    assert (second.description, second.ended) == ({"seed": 4}, None)


def test_a_reader_sees_trials_while_the_writer_goes_on(store: TrialStore, path: Path) -> None:
    with TrialStore(path, read_only=True) as reader:
        for x in range(3):
            store.insert(trial_of({"x": x}, cycles=9), run="run-1")
            assert reader.count() == x + 1


def test_trials_survive_a_kill(path: Path) -> None:
    script = """
import os, sys, signal
from pathlib import Path
from kit.search.toy_spaces import trial_of
from tuner.trial_store import TrialStore
from tuner.database import writing
from tuner.trial_schema import TRIAL_SCHEMA
store = TrialStore(Path(sys.argv[1]))
store.begin_run("r", {}, begun=0.0)
for x in range(5):
    store.insert(trial_of({"x": x}, cycles=9), run="r")
os.kill(os.getpid(), signal.SIGKILL)
"""
    root = Path(__file__).parents[2]
    environment = {"PYTHONPATH": f"{root}:{root / 'proto'}:{root / 'tests'}"}
    ended = subprocess.run(
        [sys.executable, "-c", script, str(path)], env=environment, check=False, timeout=60
    )
    assert ended.returncode == -9
    with TrialStore(path) as store:
        assert store.count() == 5


def test_a_second_writer_is_refused_until_the_first_ends(store: TrialStore, path: Path) -> None:
    with pytest.raises(OutputError, match="another run"):
        TrialStore(path)
    store.close()
    TrialStore(path).close()


def test_opening_again_keeps_everything(path: Path) -> None:
    for k in range(3):
        with TrialStore(path) as store:
            store.begin_run(f"r{k}", {}, begun=float(k))
            store.insert(trial_of({"x": k}, cycles=9), run=f"r{k}")
    with TrialStore(path) as store:
        assert store.count() == 3


def test_a_file_that_cannot_be_written_is_not_called_damaged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr("tuner.database.migrate", refused)
    with pytest.raises(OutputError, match=r"cannot write .*readonly database") as caught:
        TrialStore(path)
    assert "can be written" in caught.value.hint


def test_a_file_that_somebody_removes_is_told_with_the_next_trial(path: Path) -> None:
    """The system would let it be written on, and nobody would find it."""
    with TrialStore(path) as store:
        store.begin_run("r", {}, begun=0.0)
        path.unlink()
        with pytest.raises(OutputError, match="has been removed while this ran") as gone:
            store.insert(trial_of({"x": 1}, cycles=9), run="r")
        assert "same command" in gone.value.hint


@pytest.mark.parametrize(("code", "full"), [("FULL", True), ("IOERR_WRITE", True), ("PERM", False)])
def test_a_full_disk_is_nobodys_mistake(path: Path, code: str, full: bool) -> None:
    error = sqlite3.OperationalError("of the disk")
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{code}")

    def change() -> None:
        with writing(sqlite3.connect(":memory:"), path):
            raise error

    path.touch()
    with pytest.raises(OutputError) as told:
        change()
    assert isinstance(told.value, DiskError) == full


def test_a_damaged_file_is_named(path: Path) -> None:
    with TrialStore(path) as store:
        store.begin_run("r", {}, begun=0.0)
        for x in range(300):
            store.insert(trial_of({"x": x}, cycles=9), run="r")
    damage(path)
    path.with_name(path.name + ".copy").unlink()
    with pytest.raises(OutputError, match="is damaged") as caught:
        TrialStore(path)
    assert str(path) in str(caught.value)


def damage(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    content = bytearray(path.read_bytes())
    content[4096:20480] = b"\xa5" * 16384
    path.write_bytes(content)


@pytest.mark.parametrize("sessions", [1, 2])
def test_a_damaged_file_comes_back_from_its_copy(path: Path, sessions: int) -> None:
    trials = [trial_of({"x": x}, cycles=9) for x in range(300)]
    for session in range(sessions):
        with TrialStore(path) as store:
            store.begin_run(f"r{session}", {}, begun=0.0)
            for trial in trials[session::sessions]:
                assert store.insert(trial, run=f"r{session}")
            another = trial_of({"y": session}, cycles=9)
            assert store.insert(another, run=f"r{session}", place=TrialPosition(1, 7 + session))
            store.end_run(f"r{session}", "done", ended=1.0)
            before = store.trials(), store.places(), store.runs()
    damage(path)
    damaged = path.read_bytes()
    with path.with_name(path.name + ".since").open("a") as file:
        file.write('["trial", "cut o')  # as a kill leaves it
    with TrialStore(path) as store:
        assert "is damaged" in store.restored
        assert path.with_name(path.name + ".damaged").read_bytes() == damaged
        assert (store.trials(), store.places(), store.runs()) == before
        assert not store.insert(trials[0], run="r0")
    with TrialStore(path) as store:
        assert not store.restored
        assert store.trials() == before[0]


def test_a_copy_that_cannot_be_kept_is_none(path: Path) -> None:
    copy = path.with_name(path.name + ".copy")
    path.with_name(path.name + ".since").symlink_to("/dev/full")
    with TrialStore(path) as store:
        assert copy.exists()
        store.begin_run("r", {}, begun=0.0)
        assert not copy.exists()
        for x in (1, 2):
            store.insert(trial_of({"x": x}, cycles=9), run="r")
    with TrialStore(path) as store:
        assert store.count() == 2
        assert copy.exists()


def test_a_file_of_something_else_is_refused(path: Path) -> None:
    path.write_bytes(b"this is not a database, and it is long enough to be read as one" * 40)
    with pytest.raises(OutputError, match="damaged"):
        TrialStore(path)
    path.unlink()
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE recipes (name TEXT)")
    database.close()
    with pytest.raises(OutputError, match="something else"):
        TrialStore(path)


def test_a_newer_file_is_refused(path: Path) -> None:
    TrialStore(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(OutputError, match="newer tilefarm"):
        TrialStore(path)


def test_a_missing_file_or_folder_is_named(path: Path) -> None:
    with pytest.raises(OutputError, match="cannot open"):
        TrialStore(path, read_only=True)
    with pytest.raises(OutputError, match="cannot be written"):
        TrialStore(path.parent / "nowhere" / "r.sqlite")
