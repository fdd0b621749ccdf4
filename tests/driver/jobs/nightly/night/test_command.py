"""`tilefarm nightly` as its user sees it: bad input in a line, and real nights of one layer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from driver import cli

ZOO = """
name = "small"
[night]
seconds = 600
[search]
trials = 9
[[target]]
name = "sim"
[[model]]
name = "layer"
file = "op:gemm m=16 n=16 k=16"
"""


def nightly(folder: Path, zoo: str, *words: str) -> int:
    (folder / "zoo.toml").write_text(zoo)
    return cli.main(
        ["nightly", str(folder / "zoo.toml"), "--history", str(folder / "nights"), *words]
    )


@pytest.mark.parametrize(
    ("zoo", "words", "said"),
    [
        ("name = ", (), "not TOML"),
        ("name = 'a'", (), "no model is on any target"),
        (ZOO, ("--only", "nosuch"), "--only nosuch: no such row"),
        (ZOO, ("--budget", "0"), "--budget 0"),
        (ZOO, ("--rows", "0"), "--rows"),
    ],
)
def test_bad_input_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], zoo: str, words: tuple[str, ...], said: str
) -> None:
    try:
        code = nightly(tmp_path, zoo, *words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "nights" / "history.sqlite").exists()


def test_a_history_of_another_zoo_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = ZOO.replace('"op:gemm m=16 n=16 k=16"', '"gone.onnx"')
    assert nightly(tmp_path, missing) == 1
    assert nightly(tmp_path, missing.replace("small", "other")) == 2
    assert "is the history of zoo 'small', not of 'other'" in capsys.readouterr().err


def test_faults_of_the_file_are_told_and_the_rest_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zoo = ZOO.replace('"op:gemm m=16 n=16 k=16"', '"gone.onnx"') + "\n[gate]\ncycles = 101\n"
    assert nightly(tmp_path, zoo, "--json") == 1
    events: list[dict[str, Any]] = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert "[gate] cycles = 101" in events[0]["text"]
    (done,) = (event for event in events if event["event"] == "row_done")
    assert done["verdict"] == "NOT_MEASURED"
    assert "gone.onnx: cannot be read" in done["why"]
    assert events[-1] == {"event": "night_ended", "exit_code": 1}


@pytest.mark.slow
def test_two_real_nights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zoo = ZOO.replace("[[model]]", '[[target]]\nname = "processor"\ntarget = "cpu"\n[[model]]')
    codes, nights = list[int](), list[dict[str, dict[str, Any]]]()
    for _ in range(2):
        codes.append(nightly(tmp_path, zoo, "--json"))
        events = map(json.loads, capsys.readouterr().out.splitlines())
        nights.append({e["target"]: e for e in events if e["event"] == "row_done"})
    first, second = nights
    assert codes == [0, 0], nights
    assert {each["verdict"] for each in first.values()} == {"INSUFFICIENT_HISTORY"}
    assert second["sim"]["verdict"] == "UNCHANGED"
    assert second["sim"]["samples"]["known"]["cost"] == first["sim"]["samples"]["found"]["cost"]
    assert second["sim"]["samples"]["known"]["clock"] == "cycles"
    timed = second["processor"]["samples"]["known"]
    assert timed["clock"] == "seconds"
    assert timed["low"] <= timed["cost"] <= timed["high"]
    assert timed["again"] is not None
    assert (tmp_path / "nights" / "page" / "index.html").exists()
