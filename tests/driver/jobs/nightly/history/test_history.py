"""A history keeps what nights measured, once, in order, and says what is wrong with a file."""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.reports.measured_nights import BEGAN, DAY, ROW, Measured, chosen
from tilefarm.errors import OutputError
from tilefarm.measurement import DeviceClock

from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.history.night_order import clock_went_back, in_order
from driver.jobs.nightly.records import (
    Acceptance,
    Adoption,
    Judged,
    Night,
    Pass,
    Row,
    Verdict,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    with History(path, "zoo") as opened:
        yield opened


def test_a_night_is_read_back(history: History, path: Path) -> None:
    night = history.begin(BEGAN)
    assert night == Night(name="2027-01-15T08:00:00Z", zoo="zoo", began=BEGAN)
    schedules = history.keep(chosen(3))
    known = Measured().sample(night.name, schedules)
    by_clock = Measured(clock=DeviceClock.SECONDS, cost=0.25, row=Row("digits", "cpu"), again=0.5)
    timed = by_clock.sample(night.name, schedules)
    found = replace(known, part=Pass.FOUND)
    assert [history.add(each) for each in (found, known, timed)] == [True] * 3
    with History(path, "zoo", read_only=True) as read:
        assert read.samples(layers=True) == [timed, known, found]
        assert read.samples(row=ROW)[0].time == replace(known.time, layers=())
        assert read.rows() == [timed.row, ROW]
        assert set(read.schedules(schedules)) == set(chosen(3))
    history.end(night.name, BEGAN + 9, "out of time")
    assert history.nights() == [replace(night, ended=BEGAN + 9, why_ended="out of time")]


def test_what_is_there_is_not_added_again(history: History) -> None:
    night = history.begin(BEGAN).name
    sample = Measured().sample(night, history.keep(chosen(1)))
    later = replace(sample, time=replace(sample.time, cost=1001.0, high=1001.0))
    assert [history.add(sample), history.add(sample), history.add(later)] == [True, False, False]
    assert history.samples(layers=True) == [sample]


def test_a_sample_without_its_night_or_schedules_is_a_fault_and_leaves_nothing(
    history: History,
) -> None:
    schedules = history.keep(chosen(1))
    with pytest.raises(ValueError, match="not in the history: 2027"):
        history.add(Measured().sample("2027-01-01T00:00:00Z", schedules))
    sample = Measured().sample(history.begin(BEGAN).name, schedules.of(b"never kept"))
    with pytest.raises(ValueError, match="not in the history"):
        history.add(sample)
    assert history.samples() == []
    assert history.rows() == []


def test_what_repeats_is_kept_once(history: History) -> None:
    schedules = history.keep(chosen(1))
    for day in range(3):
        history.add(Measured().sample(history.begin(BEGAN + day * DAY).name, schedules))
    kept = history.file.query("SELECT count(*) FROM contents")[0][0]
    assert kept == 2 + 1 + len(("machine", "order", "answers", "layers", "costs"))
    history.keep(chosen(2))
    assert history.file.query("SELECT count(*) FROM contents")[0][0] == kept + 2


def test_the_last_verdict_of_a_row_counts(history: History) -> None:
    nights = [history.begin(BEGAN + day * DAY).name for day in range(3)]
    for night in nights:
        history.judge(Judged(night=night, row=ROW, verdict=Verdict.NOT_MEASURED, why="no board"))
    better = Judged(
        night=nights[1], row=ROW, verdict=Verdict.SLOWER, change=0.03, against=nights[0]
    )
    history.judge(better)
    assert history.verdicts(night=nights[1]) == [better]
    assert [each.night for each in history.verdicts(row=ROW, last=2)] == nights[1:]
    assert history.verdicts(row=Row("another", "sim")) == []


def test_the_last_adoption_is_that_of_the_last_night(history: History) -> None:
    first, second = (history.begin(BEGAN - day * DAY).name for day in range(2))
    one, two = history.keep(chosen(1)), history.keep(chosen(2))
    later = Adoption(row=ROW, night=second, schedules=two, who="search", when=BEGAN - DAY)
    assert history.adopted(ROW) is None
    history.adopt(later)
    history.adopt(replace(later, night=first, schedules=one, when=BEGAN))
    assert history.adopted(ROW) == later, "the clock went back before it"
    assert history.adoptions(Row("another", "sim")) == []
    accepted = Acceptance(row=ROW, night=first, who="kim", when=BEGAN, why="the price of safety")
    history.accept(accepted)
    history.accept(accepted)
    assert history.acceptances(ROW) == history.acceptances() == [accepted]


def test_a_clock_that_goes_back_is_said_and_changes_no_order(history: History) -> None:
    nights = [history.begin(now) for now in (BEGAN, BEGAN - DAY, BEGAN, BEGAN + 0.5)]
    assert history.nights() == nights
    assert len({night.name for night in nights}) == 4
    went_back = [clock_went_back(night, before) for before, night in itertools.pairwise(nights)]
    assert [bool(words) for words in went_back] == [True, False, False]
    assert went_back[0].startswith("the clock went back: night 2027-01-14T08:00:00Z begins after")
    assert clock_went_back(nights[0], None) == ""


NAMES = st.sampled_from("abcde")
NIGHTS = st.lists(
    st.builds(Night, name=NAMES, zoo=st.just("zoo"), began=st.integers(0, 3), after=NAMES),
    unique_by=lambda night: night.name,
)


@given(NIGHTS, st.randoms())
def test_the_order_of_nights_does_not_depend_on_how_they_came(
    nights: list[Night], chance: random.Random
) -> None:
    ordered = in_order(nights)
    assert sorted(ordered, key=lambda night: night.name) == sorted(
        nights, key=lambda night: night.name
    )
    chance.shuffle(nights)
    assert in_order(nights) == ordered


def test_two_nights_at_once_are_refused(history: History, path: Path) -> None:
    with history.alone(), History(path, "zoo") as other:
        with pytest.raises(OutputError, match="another run is writing"), other.alone():
            pass
        other.accept(Acceptance(row=ROW, night="n", who="kim", when=BEGAN))
    with history.alone():
        assert history.acceptances(ROW)


def test_the_history_of_another_zoo_is_refused(history: History, path: Path) -> None:
    with pytest.raises(OutputError, match="is the history of zoo 'zoo', not of 'other'"):
        History(path, "other")
    with History(path, read_only=True) as whichever:
        assert whichever.zoo == "zoo"


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_history_is_refused(path: Path, read_only: bool) -> None:
    path.write_bytes(b"hello" * 999)
    with pytest.raises(OutputError, match="is damaged: file is not a database"):
        History(path, read_only=read_only)
    path.unlink()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE friends (name TEXT)")
    with pytest.raises(OutputError, match="is a database of something else"):
        History(path, read_only=read_only)


def test_a_newer_history_is_refused(history: History, path: Path) -> None:
    history.close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(OutputError, match="written by a newer tilefarm"):
        History(path, "zoo")


def test_damage_is_said_where_it_is_read(history: History, path: Path) -> None:
    schedules = history.keep(chosen(1))
    for day in range(300):
        night = history.begin(BEGAN + day * DAY).name
        history.add(Measured(cost=1000 + day).sample(night, schedules))
    history.close()
    content = bytearray(path.read_bytes())
    content[3 * 4096 : -4096] = bytes(len(content) - 4 * 4096)
    path.write_bytes(content)
    with pytest.raises(OutputError, match="damaged") as caught, History(path, "zoo") as damaged:
        damaged.samples(layers=True)
    assert "restore a copy" in caught.value.hint
    with History(path) as damaged, pytest.raises(OutputError, match="damaged"):
        damaged.file.require_sound()


def test_a_record_of_another_version_is_said(history: History, path: Path) -> None:
    history.add(Measured().sample(history.begin(BEGAN).name, history.keep(chosen(1))))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE contents SET content = CAST('={}' AS BLOB)")
    with pytest.raises(OutputError, match="holds a record that cannot be read"):
        history.samples()


def test_a_full_disk_is_said_and_what_was_there_stays(history: History, path: Path) -> None:
    night, schedules = history.begin(BEGAN).name, history.keep(chosen(1))
    history.add(Measured().sample(night, schedules))
    pages = history.file.query("PRAGMA page_count")[0][0]
    history.file.query(f"PRAGMA max_page_count = {pages}")
    big = replace(
        Measured().sample(night, schedules).order, version="".join(map(chr, range(256, 9999)))
    )
    with pytest.raises(OutputError, match="disk is full") as caught:
        history.add(replace(Measured(row=Row("b", "sim")).sample(night, schedules), order=big))
    assert type(caught.value).__name__ == "DiskError"
    assert "space" in caught.value.hint
    with History(path, read_only=True) as read:
        assert [sample.row for sample in read.samples()] == [ROW]
