"""`tilefarm records`: what it prints, moves and refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from kit.search.schedule_records import schedule_record
from kit.search.stand_ins import toy_workload

from driver.cli import main
from tuner.schedule_store import ScheduleRecord, ScheduleStore
from tuner.trial_store import TrialStore

NARROW, WIDE = toy_workload(1), toy_workload(2)


def record(point: int, *, lanes: int = 1, cycles: int | None = 1234) -> ScheduleRecord:
    name = "sim" if cycles else "cpu"
    return schedule_record(point, lanes=lanes, cycles=cycles, ended=86400.0, target_name=name)


def records(action: str, *words: str) -> int:
    """The command on the file of this test, or on one that the words name."""
    return main(["records", action, "--records", "team.sqlite", *words])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "team.sqlite"
    with ScheduleStore(path) as store:
        store.add([record(1), record(2, cycles=2000), record(3, lanes=2, cycles=None)])
    monkeypatch.chdir(tmp_path)
    return path


def test_list_has_a_row_for_each_workload(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert records("list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == [WIDE.name, "cpu", "1", "2", "000.0", "us", "1970-01-02"]
    assert lines[2].split() == [NARROW.name, "sim", "2", "1", "234", "cycles", "1970-01-02"]
    assert lines[3] == "3 schedules of 2 workloads on 1 target"
    assert records("list", "--json", "--target", "sim") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["schedules"], row["cycles"]) == (NARROW.name, 2, 1234)


def test_show_has_a_row_for_each_schedule(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert records("show", NARROW.name) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert records("show", "--most", "1", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_best_writes_what_show_takes(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert records("best", NARROW.name, "--out", "best") == 0
    assert json.loads(capsys.readouterr().out)["cycles"] == 1234
    assert json.loads(Path("best/point.json").read_text()) == {"x": 1}
    assert main(["show", "--workload", "best/workload.json", "--after", "nest"]) == 0


def test_what_is_exported_is_imported(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert records("export", "all.jsonl") == 0
    assert records("export", "-", "--best") == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert records("import", "all.jsonl", "--records", "other.sqlite") == 0
    assert capsys.readouterr().out == "3 schedules added, 0 known or older\n"
    with ScheduleStore(file) as ours, ScheduleStore(Path("other.sqlite")) as theirs:
        assert list(ours.records()) == list(theirs.records())


def test_lines_that_are_no_records_are_named_and_the_others_kept(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = record(7).to_json()
    newer = good.replace('"schema":1', '"schema":9')
    Path("bad.jsonl").write_text("\n".join([newer, good, "\x1b[2J", *["x"] * 20]) + "\n")
    assert records("import", "bad.jsonl") == 2
    said = capsys.readouterr()
    assert said.out == "1 schedule added, 0 known or older\n"
    assert "bad.jsonl, line 1: schema 9, this version reads 1" in said.err
    assert "refused: 12 more" in said.err
    assert "\x1b" not in said.err


def test_files_are_merged_and_pruned(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ScheduleStore(Path("yours.sqlite")) as yours:
        yours.add([record(4), record(1)])
    assert records("merge", "yours.sqlite") == 0
    assert capsys.readouterr().out == "yours.sqlite: 1 schedule added of 2\n"
    assert records("prune", "--keep", "1") == 0
    assert capsys.readouterr().out == "2 schedules dropped, 2 stay\n"


def test_what_cannot_be_used_is_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TrialStore(Path("run.sqlite")).close()
    Path("bytes").write_bytes(b"\xff\xfe")
    for words, what in (
        (["list", "--records", "absent"], "there is no such file"),
        (["list", "--records", "run.sqlite"], "a database of something else"),
        (["list", "--records", "bytes"], "is damaged"),
        (["best", "dense"], "2 are known"),
        (["best", "conv2d"], "none is known"),
        (["merge", "absent"], "there is no such file"),
        (["import", "absent"], "cannot be read"),
        (["import", "bytes"], "no text"),
        (["export", "nowhere/all.jsonl"], "nowhere"),
        (["prune", "--keep", "0"], "whole number from 1"),
    ):
        assert records(*words) == 2, words
        said = capsys.readouterr().err
        assert what in said
        assert "try:" in said
    with ScheduleStore(file) as store:
        assert len(store) == 3


def test_a_second_run_begins_with_what_the_first_one_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["tune-op", "gemm m=8 n=16 k=16", "--devices", "1", "--no-ray", "--records", "r.sqlite"]
    assert main([*words, "--trials", "12", "--out", "first"]) == 0
    assert "records: 0 of 1 workload known" in capsys.readouterr().out
    assert main([*words, "--trials", "0", "--out", "second"]) == 0
    assert "records: 1 of 1 workload known" in capsys.readouterr().out
    first, second = (
        json.loads(Path(run, "summary.json").read_text()) for run in ("first", "second")
    )
    (before,), (after,) = first["workloads"], second["workloads"]
    assert (after["trials"], after["best_cycles"]) == (1, before["best_cycles"])


def test_a_file_of_an_editor_is_imported(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("edited.jsonl").write_bytes(f"\ufeff{record(7).to_json()}\r\n \r\n\r\n".encode())
    assert records("import", "edited.jsonl") == 0
    assert capsys.readouterr().out == "1 schedule added, 0 known or older\n"


def test_no_record_makes_rows_of_its_own(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ScheduleStore(file) as store:
        store.add([replace(record(8), target_name="sim\nconv2d", device="\x1b[2J\n")])
    for action, rows in (("list", 3), ("show", 5)):
        assert records(action) == 0
        said = capsys.readouterr().out
        assert len(said.splitlines()) == rows + (action == "list")
        assert "\x1b" not in said


def test_the_file_of_records_is_never_lost_under_its_export(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("link").symlink_to(file)
    for out in (str(file), "link"):
        assert records("export", out) == 2
        assert "which would be lost" in capsys.readouterr().err
    with ScheduleStore(file) as store:
        assert len(store) == 3


def test_a_merge_of_what_is_not_there_makes_no_file(file: Path) -> None:
    assert records("merge", str(file), "absent", "--records", "new.sqlite") == 2
    assert not Path("new.sqlite").exists()
