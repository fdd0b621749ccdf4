"""`tilefarm bisect`: from a history's slower night to the commit, with the row's own command."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from kit.reports.measured_nights import BEGAN, DAY, Measured
from kit.reports.nightly_runs import StandInRows, with_tile
from kit.repositories import git
from tilefarm.digest import Digest
from tilefarm.measurement import DeviceClock

from driver import cli
from driver.jobs.nightly.bisect.row_bisection import row_change
from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.night.night import HISTORY
from driver.jobs.nightly.records import ChosenSchedule, Judged, Row, Verdict
from driver.tune.chosen_schedules import schedules_text

ROW = Row("digits", "sim")
FIRST_SLOW = 3
_BUILD = """\
mkdir -p .venv/bin
cat > .venv/bin/tilefarm <<END
#!/bin/sh
test -d "$PWD/left" || { echo 'error: --schedules: no such option' >&2; exit 2; }
while [ "\\$1" != --out ]; do shift; done
mkdir -p "\\$2" && cp -r "$PWD/left/." "\\$2"
END
chmod +x .venv/bin/tilefarm
"""
"""Builds a `tilefarm` that leaves what its commit says a run would have left."""


@dataclass(frozen=True, slots=True)
class Place:
    """A repository, a zoo and its history."""

    repository: Path
    zoo: Path
    history: Path

    def bisect(self, *more: str) -> int:
        words = ["bisect", str(self.zoo), "--history", str(self.history), "--row", str(ROW)]
        where = ["--checkout", str(self.repository), "--build", "sh build.sh"]
        return cli.main([*words, *where, *more])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Eight commits, of which the fifth knows no --schedules; from the fourth on a tenth more."""
    repository, given = tmp_path / "repository", tmp_path / "given.json"
    repository.mkdir()
    given.write_text(schedules_text(with_tile(1)))
    git(repository, "init", "--quiet", "--initial-branch=main")
    (repository / "build.sh").write_text(_BUILD)
    (repository / ".gitignore").write_text(".venv\n")
    for at in range(8):
        left = repository / "left"
        subprocess.run(["rm", "-rf", left], check=True)
        if at != 4:
            runner = StandInRows(cycles=8000 + 800 * (at >= FIRST_SLOW))
            words = ["tune", "zoo:digits", "--out", str(left), "--trials", "0"]
            runner.run([*words, "--schedules", str(given)], left.parent / "log", 1.0)
        (repository / "note").write_text(str(at))
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "--message", f"number {at}")
    zoo = tmp_path / "zoo.toml"
    zoo.write_text(
        'name="zoo"\n[[target]]\nname="sim"\n[[model]]\nname="digits"\nfile="zoo:digits"\n'
    )
    made = Place(repository, zoo, tmp_path / "nights")
    made.history.mkdir()
    _two_nights(made, with_tile(1))
    return made


def _two_nights(place: Place, schedules: tuple[ChosenSchedule, ...]) -> None:
    """The first commit's night, and the last one's, which is slower."""
    with History(place.history / HISTORY, "zoo") as history:
        kept = history.keep(schedules)
        nights = [history.begin(BEGAN + at * DAY).name for at in range(2)]
        for at, night in enumerate(nights):
            commit = git(place.repository, "rev-parse", "main" if at else "main~7")
            history.add(Measured(row=ROW, code=commit, cost=8000.0 + 800 * at).sample(night, kept))
        history.judge(
            Judged(night=nights[1], row=ROW, verdict=Verdict.SLOWER, change=0.1, against=nights[0])
        )


def test_it_finds_the_commit_between_two_nights(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.bisect("--json") == 0
    told = json.loads(capsys.readouterr().out)
    found = git(place.repository, "log", "-1", "--format=%s", told["found"][0])
    assert found == f"number {FIRST_SLOW}"
    assert told["levels"] == [8000.0, 8800.0]
    assert git(place.repository, "status", "--porcelain") == ""


def test_the_same_command_measures_nothing_twice(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.bisect() == 0
    first = capsys.readouterr().out
    assert f"number {FIRST_SLOW}\n  8" in first
    assert place.bisect("--build", "false") == 0
    assert f"number {FIRST_SLOW}\n  8" in capsys.readouterr().out
    assert place.bisect("--build", "false", "--again") == 1
    assert "cannot be measured" in capsys.readouterr().out


def test_a_commit_that_knows_no_schedules_is_left_out(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.bisect() == 0
    said = capsys.readouterr().out
    assert "number 4: one of 7 that may be it\n  cannot be measured: exit code 2" in said
    assert "error: --schedules: no such option" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--row", "digits on moon"], "the zoo has no such row; one of"),
        (["--build", "'"], "No closing quotation"),
        (["--build", ""], "--build says nothing"),
        (["--good", "nothing"], "is no commit of"),
        (["--history", "/nonexistent"], "nonexistent"),
    ],
)
def test_bad_input_is_a_line(
    place: Place, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert place.bisect(*words) == 2
    assert said in " ".join(capsys.readouterr().err.replace("try:", ";").split()).replace(" ;", ";")


def test_a_row_that_was_never_slower_needs_two_commits(place: Place) -> None:
    with History(place.history / HISTORY) as history:
        last = history.verdicts(row=ROW)[-1]
        history.judge(Judged(night=last.night, row=ROW, verdict=Verdict.UNCHANGED))
        with pytest.raises(Exception, match="no night has called digits on sim slower"):
            row_change(history, ROW, None, None)
        change = row_change(history, ROW, "a", "b")
        assert (change.good, change.bad, change.spread) == ("a", "b", 0.0)


def test_a_clocks_noise_is_that_of_the_rows_nights(place: Place) -> None:
    row = Row("digits", "cpu")
    with History(place.history / HISTORY) as history:
        kept = history.keep(with_tile(1))
        nights = [history.begin(BEGAN + (9 + at) * DAY).name for at in range(8)]
        for at, night in enumerate(nights):
            cost = 1e-3 * (1.01 if at % 2 else 1.0)
            made = Measured(row=row, clock=DeviceClock.SECONDS, cost=cost, code="c" * 40)
            history.add(made.sample(night, kept))
        change = row_change(history, row, "a", "b")
    assert change.spread == pytest.approx(0.0104, rel=0.1)
    assert change.clock is DeviceClock.SECONDS
    assert (
        Digest.of_json([each.trace.digest.hex for each in change.schedules]).short in change.about
    )
