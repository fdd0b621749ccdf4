"""`tilefarm bench seed`: what it compares, and what it says."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from driver import cli
from driver.benchmarks import seed
from driver.benchmarks.seed import SeededSearch, seed_figures

SEARCHED = SeededSearch(
    best=(("w", "t1"),), trials=(("w", "t1", "ok", 7), ("w", "t2", "ok", 9)), kills=0, seconds=0.5
)


def values(*searches: SeededSearch) -> dict[str, tuple[float, bool]]:
    return {f.name: (f.value, f.is_met) for f in seed_figures(searches)}


def test_searches_that_found_the_same_meet_the_goals() -> None:
    found = values(SEARCHED, replace(SEARCHED, seconds=1.0), replace(SEARCHED, kills=2))
    assert found == {
        "searches": (3, True),
        "  kills": (2, True),
        "distinct best schedules": (1, True),
        "distinct trials": (1, True),
        "left alone": (4.0, True),
        "under load": (2.0, True),
    }


def test_another_best_and_other_ends_are_told_apart() -> None:
    other_best = replace(SEARCHED, best=(("w", "t2"),))
    other_order = replace(SEARCHED, trials=SEARCHED.trials[::-1])
    found = values(SEARCHED, other_best, other_order)
    assert found["distinct best schedules"] == (2, False)
    assert found["distinct trials"] == (2, False)


def test_the_command_kills_every_second_search_and_fails_where_they_differ(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Sequence[int]] = []

    def searched(out: Path, trials: int, chosen: int, kills: Sequence[int]) -> SeededSearch:
        asked.append(kills)
        assert (trials, chosen) == (50, 3)
        return replace(SEARCHED, kills=len(kills), best=(("w", f"t{len(asked)}"),))

    def in_pieces(
        out: Path, trials: int, chosen: int, moments: Sequence[float]
    ) -> tuple[SeededSearch, int]:
        assert out.name == "pieces"
        assert len(moments) == 7
        return replace(searched(out, trials, chosen, []), kills=7), 2

    monkeypatch.setattr(seed, "searched", searched)
    monkeypatch.setattr(seed, "searched_in_pieces", in_pieces)
    words = ["bench", "seed", "--runs", "5", "--trials", "50", "--seed", "3", "--load", "1"]
    words += ["--kills", "7"]
    assert cli.main([*words, "--gate"]) == 1
    told = capsys.readouterr().out
    assert "distinct best schedules         6            <= 1  missed" in told
    assert "trials measured again           2            <= 0  missed" in told
    assert [bool(kills) for kills in asked] == [False, False, True, False, True, False]
    assert all(0 < after < 50 for kills in asked for after in kills)
    assert cli.main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["met"] for row in document["figures"] if row["goal"] is not None] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("words", ["--runs 1", "--trials 1", "--load -1", "--seed -1"])
def test_impossible_options_are_named(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "seed", *words.split()]) == 2
    told = capsys.readouterr().err
    option, value = words.split()
    assert f"{option}: {value!r} is not a whole number from" in told
    assert "\n  try: `tilefarm bench seed --help`" in told


def test_a_search_that_fails_ends_the_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is compared with a half of a search."""
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\necho \'{"event": "trial", "number": 1}\'\nexit 3\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    assert cli.main(["bench", "seed", "--runs", "2", "--load", "0"]) == 70
    told = capsys.readouterr().err
    assert "the search ended with exit code 3" in told
    assert "\n  try: `tilefarm demo --json --no-ray" in told


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_whole_searches_under_load_and_kills_end_alike(capsys: pytest.CaptureFixture[str]) -> None:
    """One left alone, one under load, one killed as well, and one in pieces."""
    words = ["--runs", "3", "--trials", "60", "--load", "2", "--kills", "5", "--gate", "--json"]
    assert cli.main(["bench", "seed", *words]) == 0
    document = json.loads(capsys.readouterr().out)
    kills = [each["kills"] for each in document["searches"]]
    assert [each > 0 for each in kills] == [False, False, True, True]
    assert all(len(each["trials"]) == 60 for each in document["searches"])


def test_numbers_of_trials_are_read_to_a_line_that_a_kill_has_cut() -> None:
    lines = ['{"event": "step"}', '{"event": "trial", "number": 4}', '{"event": "tri']
    assert [*seed.trials_told(lines)] == [4]
