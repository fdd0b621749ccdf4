"""A history for other tools: flat tables, typed columns, ISO times."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from kit.reports.measured_nights import BEGAN, DAY, ROW, Measured, chosen
from tilefarm.errors import OutputError
from tilefarm.measurement import DeviceClock

from driver.jobs.nightly.history.export import COLUMNS, TABLES, export_csv, export_json
from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.history.pruning import Pruned, prune
from driver.jobs.nightly.records import Acceptance, Adoption, Judged, Row, Verdict


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path / "history.sqlite", "zoo") as opened:
        for day in range(4):
            night = opened.begin(BEGAN + day * DAY)
            schedules = opened.keep(chosen(day))
            by_clock = Measured(clock=DeviceClock.SECONDS, cost=0.25, row=Row("digits", "cpu"))
            for measured in (Measured(), by_clock):
                opened.add(measured.sample(night.name, schedules, night.began + 60))
            opened.judge(Judged(night=night.name, row=ROW, verdict=Verdict.UNCHANGED, why='"a", b'))
            if not day:
                opened.adopt(
                    Adoption(
                        row=ROW, night=night.name, schedules=schedules, who="search", when=BEGAN
                    )
                )
                opened.accept(Acceptance(row=ROW, night=night.name, who="kim", when=BEGAN))
            opened.end(night.name, night.began + 90)
        yield opened


def test_tables_are_flat_and_typed(history: History, tmp_path: Path) -> None:
    export_json(history, tmp_path / "history.json")
    document = json.loads((tmp_path / "history.json").read_text())
    assert (document["schema"], document["zoo"]) == (1, "zoo")
    assert set(document) - {"schema", "zoo"} == set(TABLES) == set(COLUMNS)
    files = export_csv(history, tmp_path / "tables")
    assert [file.stem for file in files] == list(TABLES)
    for file in files:
        with file.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        records = document[file.stem]
        assert rows
        assert rows == [
            {name: "" if value is None else str(value) for name, value in record.items()}
            for record in records
        ]
        assert tuple(records[0]) == COLUMNS[file.stem]
        for name in COLUMNS[file.stem]:
            kinds = {type(record[name]) for record in records} - {type(None)}
            assert kinds <= {str} or kinds <= {int, float}, (file.stem, name)
    sample = document["samples"][0]
    assert datetime.fromisoformat(sample["ended"]).timestamp() == BEGAN + 60
    assert (sample["clock"], sample["cost"], sample["again"]) == ("seconds", 0.25, None)
    assert [layer["cost"] for layer in document["layers"][:2]] == [0.125, None]
    assert document["schedules"][0]["steps"].startswith("split('i', ")


def test_what_cannot_be_written_leaves_nothing_half(history: History, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    with pytest.raises(OutputError, match="cannot be written"):
        export_csv(history, tmp_path / "file")
    with pytest.raises(OutputError, match="cannot be written"):
        export_json(history, tmp_path / "nowhere" / "history.json")
    export_json(history, tmp_path / "history.json")
    whole = (tmp_path / "history.json").read_text()
    history.file.db.execute("UPDATE contents SET content = x'00'")
    with History(tmp_path / "history.sqlite", read_only=True) as read:
        history.file.db.commit()
        with pytest.raises(OutputError, match="cannot be read"):
            export_json(read, tmp_path / "history.json")
    assert (tmp_path / "history.json").read_text() == whole
    assert not list(tmp_path.glob(".*draft"))


def test_retention_keeps_the_last_nights_and_what_was_adopted(history: History) -> None:
    adopted = history.adoptions()[0]
    before = history.samples(layers=True)
    # Of the two nights that leave: the second one's schedules alone, and its set.
    assert prune(history, nights=2, layers=1) == Pruned(nights=2, layers=2, contents=2)
    samples = history.samples(layers=True)
    assert [night.name for night in history.nights()] == sorted({s.night for s in samples})
    assert samples[2:] == before[-2:]
    assert [sample.time.layers for sample in samples[:2]] == [(), ()]
    assert len(history.verdicts()) == 2
    assert history.adopted(ROW) == adopted
    assert set(history.schedules(adopted.schedules)) == set(chosen(0))
    assert prune(history, nights=2, layers=1) == Pruned()
    assert history.begin(BEGAN + 9 * DAY).after == samples[-1].night
    history.file.require_sound()
