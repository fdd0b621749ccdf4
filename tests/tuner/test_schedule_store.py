"""Schedules of many runs in one file: what stays, in whatever order it comes."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.search.schedule_records import TIME
from kit.search.schedule_records import schedule_record as record
from kit.search.stand_ins import SIM
from tilefarm.digest import Digest
from tilefarm.errors import OutputError

from tuner.schedule_store import ScheduleRecord, ScheduleStore
from tuner.trial_store import TrialStore

TARGET = SIM.digest


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ScheduleStore]:
    with ScheduleStore(tmp_path / "team.sqlite") as opened:
        yield opened


def test_the_best_of_a_workload_comes_first(store: ScheduleStore) -> None:
    slow, fast, other = record(1, cycles=300), record(2, cycles=200), record(3, lanes=2)
    assert store.add([slow, fast, other]) == 3
    assert list(store.records(TARGET, slow.workload.digest)) == [fast, slow]
    assert list(store.records(Digest.of(b"another target"))) == []
    best = {each.best.workload: (each.best, each.schedules) for each in store.workloads()}
    assert best == {slow.workload: (fast, 2), other.workload: (other, 1)}


def test_measured_again_the_later_one_stays(store: ScheduleStore) -> None:
    store.add([record(cycles=100, ended=5.0)])
    assert store.add([record(cycles=90, ended=4.0), record(cycles=100, ended=5.0)]) == 0
    assert store.add([record(cycles=110, ended=6.0)]) == 1
    assert [each.cycles for each in store.records()] == [110]


def test_cycles_and_seconds_are_never_compared(store: ScheduleStore) -> None:
    store.add([record(1, cycles=None), record(1, cycles=100), record(2, cycles=None)])
    assert [each.best.clock.value for each in store.workloads()] == ["cycles", "seconds"]
    assert store.prune(1) == 1
    assert len(store) == 2


def test_pruning_keeps_the_best_of_each_workload(store: ScheduleStore) -> None:
    store.add(record(k, lanes=lanes, cycles=500 - k) for k in range(6) for lanes in (1, 2))
    assert store.prune(2) == 8
    assert [each.cycles for each in store.records()] == [495, 496, 495, 496]


def test_nothing_of_a_batch_is_kept_where_one_fails(store: ScheduleStore) -> None:
    def batch() -> Iterator[ScheduleRecord]:
        yield record()
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        store.add(batch())
    assert not len(store)


RECORDS = st.builds(
    record,
    st.integers(0, 3),
    lanes=st.integers(1, 2),
    cycles=st.none() | st.integers(1, 5),
    ended=st.sampled_from([1.0, 2.0]),
)


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(RECORDS, max_size=12), st.randoms())
def test_files_merge_in_any_order_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, records: list[ScheduleRecord], chance: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("merged")
    shuffled = list(records)
    chance.shuffle(shuffled)
    half = len(shuffled) // 2
    with (
        ScheduleStore(folder / "one.sqlite") as one,
        ScheduleStore(folder / "left.sqlite") as left,
        ScheduleStore(folder / "right.sqlite") as right,
    ):
        one.add(records)
        left.add(shuffled[:half])
        right.add(shuffled[half:])
        right.add(left.records())
        assert list(one.records()) == list(right.records())


@given(RECORDS)
def test_a_record_is_read_back(written: ScheduleRecord) -> None:
    assert ScheduleRecord.from_json(written.to_json()) == written


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"schema": 2}, "schema 2, this version reads 1"),
        ({"cycles": 0}, "took 0"),
        ({"cycles": -4}, "took -4"),
        ({"cycles": 3.5}, "no integer"),
        ({"cycles": None}, "either cycles or a wall time"),
        ({"wall_time": {"minimum_seconds": 1}}, "not a whole record"),
        ({"ended": -1.0}, "ended at -1"),
        ({"ended": 1e12}, r"ended at 1e\+12"),
        ({"ended": 1e300}, r"ended at 1e\+300"),
        ({"cycles": 10**300}, r"took 1e\+300"),
        ({"cycles": 10**400}, "not a whole record"),
        ({"point": {"x": "y"}}, "no integer"),
        ({"point": 3}, "not a whole record"),
        ({"target": "nothing"}, "not a SHA-256"),
        ({"workload": {"operator": "none"}}, "not a whole record"),
        ({"workload": 3}, "not a whole record"),
    ],
)
def test_what_is_no_record_is_refused(change: dict[str, object], why: str) -> None:
    document = json.loads(record().to_json()) | change
    with pytest.raises(ValueError, match=why):
        ScheduleRecord.from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["", "hello", "[]", "3", "{}", '{"schema": NaN}', "[" * 10_000])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
        ScheduleRecord.from_json(text)


def test_a_record_of_another_version_is_said_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "team.sqlite"
    with ScheduleStore(path) as store:
        store.add([record()])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE schedules SET record = replace(record, '\"schema\":1', '\"schema\":2')")
    with ScheduleStore(path) as store:
        with pytest.raises(OutputError, match="schema 2, this version reads 1"):
            list(store.records())
        with pytest.raises(OutputError, match="schema 2"):
            store.workloads()
        assert len(store) == 1


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    trials, schedules = tmp_path / "records.sqlite", tmp_path / "team.sqlite"
    TrialStore(trials).close()
    ScheduleStore(schedules).close()
    with pytest.raises(OutputError, match="database of something else"):
        ScheduleStore(trials)
    with pytest.raises(OutputError, match="database of something else"):
        TrialStore(schedules)
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"no database at all" * 100)
    with pytest.raises(OutputError, match="damaged") as raised:
        ScheduleStore(garbage)
    assert raised.value.hint.startswith("choose another file"), "it may be anybody's"
    assert garbage.read_bytes() == b"no database at all" * 100


def test_a_record_has_one_time() -> None:
    with pytest.raises(ValueError, match="either cycles or a wall time"):
        replace(record(), wall_time=TIME)


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    """A pipe nobody writes to would be waited for without an end."""
    path = tmp_path / kind
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    for read_only in (True, False):
        with pytest.raises(OutputError, match="is no file"):
            ScheduleStore(path, read_only=read_only)


def test_a_file_is_read_where_nothing_can_be_written_beside_it(tmp_path: Path) -> None:
    """As on a share that is mounted for reading: SQLite would make a file of locks there."""
    path = tmp_path / "team.sqlite"
    with ScheduleStore(path) as store:
        store.add([record()])
    unwritable = tmp_path / "unwritable"
    unwritable.mkdir()
    (unwritable / path.name).write_bytes(path.read_bytes())
    (unwritable / f"{path.name}-shm").mkdir()  # root may write to any folder
    with ScheduleStore(unwritable / path.name, read_only=True) as store:
        assert list(store.records()) == [record()]
