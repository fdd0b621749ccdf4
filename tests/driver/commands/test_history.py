"""`tilefarm history`: listed, shown, accepted, merged, exported, pruned, checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.reports.measured_nights import BEGAN, DAY, ROW, Measured, chosen

from driver import cli
from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.records import Judged, Verdict

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    """A folder with three nights; the clock went back before the last one."""
    folder = tmp_path / "nights"
    folder.mkdir()
    with History(folder / "history.sqlite", "ours") as history:
        schedules = history.keep(chosen(1))
        for number, (began, cycles) in enumerate(((0, 1000), (1, 1000), (0.5, 1100))):
            night = history.begin(BEGAN + began * DAY)
            history.add(Measured(cost=cycles).sample(night.name, schedules))
            verdict = Verdict.SLOWER if number == 2 else Verdict.UNCHANGED
            change = cycles / 1000 - 1
            history.judge(Judged(night=night.name, row=ROW, verdict=verdict, change=change))
            if number < 2:
                history.end(night.name, night.began + 60, "out of time" if number else "")
    return folder


@pytest.fixture
def say(nights: Path, capsys: pytest.CaptureFixture[str]) -> Say:
    def said(*words: str, at: Path = nights) -> tuple[int, str, str]:
        code = cli.main(["history", *words, "--history", str(at)])
        found = capsys.readouterr()
        return code, found.out, found.err

    return said


def test_nights_are_listed_with_their_verdicts(say: Say, nights: Path) -> None:
    code, out, _ = say("list")
    assert code == 0
    zoo, _, first, second, third, clock = out.splitlines()
    assert zoo == "zoo ours"
    assert "whole" in first
    assert "out of time" in second
    assert "not yet" in third
    assert "1 SLOWER" in third
    assert clock.startswith("the clock went back")
    document = json.loads(say("list", "--json", "--last", "1", at=nights / "history.sqlite")[1])
    assert [night["verdicts"] for night in document["nights"]] == [{"SLOWER": 1}]


def test_a_slowdown_is_shown_and_accepted(say: Say, nights: Path) -> None:
    code, out, _ = say("accept", str(ROW), "--why", "the price of saturation", "--who", "kim")
    assert code == 0
    assert out == f"{ROW}: compared with night 2027-01-15T20:00:00Z from now on\n"
    assert say("accept", str(ROW), "--night", "2027-01-16")[0] == 0
    shown = say("show", str(ROW))[1]
    assert "1100 cycles +10.00 % SLOWER" in " ".join(shown.split())
    assert "accepted 2027-01-15T20:00:00Z by kim: the price of saturation" in shown
    assert "its times have changed for good in 2027-01-15T20:00:00Z" in shown
    with History(nights / "history.sqlite", read_only=True) as history:
        first, last = history.acceptances()
        assert last.who == "kim"
        assert first.who, "the user of this process"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["accept", "nobody on sim"], "no row 'nobody on sim' in the history\n  try: one of "),
        (["accept", str(ROW), "--night", "2027"], "3 nights begin with '2027'"),
        (["accept", str(ROW), "--night", "x"], "0 nights begin with 'x'"),
        (["show", "x"], "no row 'x' in the history"),
    ],
)
def test_what_is_not_there_is_said(say: Say, words: list[str], told: str) -> None:
    code, _, err = say(*words)
    assert code == 2
    assert told in err


def test_a_row_that_a_night_has_not_measured_is_not_accepted(say: Say, nights: Path) -> None:
    with History(nights / "history.sqlite") as history:
        history.begin(BEGAN + 9 * DAY)
    code, _, err = say("accept", str(ROW))
    assert (code, "has not measured digits on sim" in err) == (2, True)


def test_without_a_history_there_is_nothing_to_read(say: Say, tmp_path: Path) -> None:
    code, _, err = say("list", at=tmp_path)
    assert (code, "no history is there" in err) == (2, True)
    assert not (tmp_path / "history.sqlite").exists()
    with History(tmp_path / "history.sqlite", "empty"):
        pass
    assert "has no night" in say("accept", "x", at=tmp_path)[2]


def test_histories_are_merged_exported_pruned_and_checked(say: Say, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with History(other, "ours") as history:
        night = history.begin(BEGAN + 3 * DAY)
        history.add(Measured().sample(night.name, history.keep(chosen(2))))
    assert say("merge", str(other)) == (0, f"{other}: 1 sample added\n", "")
    assert say("merge", str(other))[1] == f"{other}: 0 samples added\n"
    assert say("export", str(tmp_path / "all.json"))[0] == 0
    assert len(json.loads((tmp_path / "all.json").read_text())["nights"]) == 4
    assert say("export", str(tmp_path / "tables"), "--csv")[1].count("written") == 7
    assert say("prune", "--nights", "2", "--layers", "0")[1].startswith("2 nights dropped, the")
    assert "is whole: 2 nights, 1 row, 2 samples" in say("check")[1]


def test_a_history_that_a_night_writes_is_not_pruned(say: Say, nights: Path) -> None:
    with History(nights / "history.sqlite") as history, history.alone():
        code, _, err = say("prune", "--nights", "1")
    assert (code, "another run is writing" in err) == (2, True)
