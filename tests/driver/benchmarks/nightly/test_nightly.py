"""The bench of nights: what it draws, plays and writes is what it says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng

from driver import cli
from driver.benchmarks.figures import Figure
from driver.benchmarks.nightly import command
from driver.benchmarks.nightly.cycles_verdicts import cycles_figures
from driver.benchmarks.nightly.history_size import Scale, history_figures
from driver.benchmarks.nightly.noise import MeasuredNoise
from driver.benchmarks.nightly.noise_models import MODELS, measured
from driver.benchmarks.nightly.page_opened import page_figures
from driver.benchmarks.nightly.simulated_nights import WARM, simulate
from driver.benchmarks.nightly.wall_time_verdicts import wall_time_figures
from driver.program.rounds import ROUNDS
from driver.report.rounds import Round


def drifting(count: int) -> list[Round]:
    """A machine that gets slower and faster by 5 %, the control with it."""
    chance = default_rng(0)
    speed = 1 + 0.05 * np.sin(np.arange(count) / 7)
    noise = 1 + 0.002 * chance.standard_normal((count, 2))
    return [Round(2e-3 * s * a, 1e-3 * s * b) for s, (a, b) in zip(speed, noise, strict=True)]


def test_quiet_rows_raise_no_alarm_and_a_slowdown_is_found() -> None:
    noise = 0.002 * default_rng(0).standard_normal((WARM + 30, 3, 2))
    played = simulate(noise, 0.03)
    assert (played.slower, played.faster, played.false_alarms) == (0, 0, 0.0)
    assert played.tried == played.found == 9
    assert simulate(noise, 0.001).found == 0, "which nobody would call a slowdown"


def test_a_slowdown_that_stays_is_one_alarm() -> None:
    noise = 0.001 * default_rng(0).standard_normal((60, 2, 2))
    noise[40:, 0] += 0.05
    played = simulate(noise, 0.03)
    assert played.slower == 1
    assert played.false_alarms == pytest.approx(4000 / 120)
    assert simulate(noise, 0.03, device_changes=2).slower == 0, "another device has another level"


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_gives_what_it_promises(kind: str) -> None:
    noise = MODELS[kind](default_rng(0), 200, 5)
    assert noise.shape == (200, 5, 2)
    assert np.isfinite(noise).all()
    assert 0.001 < noise.std() < 0.05
    assert (noise == MODELS[kind](default_rng(0), 200, 5)).all()


def test_what_was_measured_is_drawn_with_what_came_right_after_it() -> None:
    found = MeasuredNoise.of(drifting(5 * ROUNDS))
    assert len(found.with_control) == 4 * ROUNDS + 1
    steady, raw = (measured(found, control=which)(default_rng(0), 50, 4) for which in (True, False))
    assert steady.shape == (50, 4, 2)
    assert 5 * steady.std() < raw.std()
    values = np.asarray(found.with_control) - np.median(found.with_control)
    first = int(np.flatnonzero(np.isclose(values, steady[0, 0, 0]))[0])
    assert steady[0, 0, 1] == values[first + ROUNDS]


def test_verdicts_are_told_beside_their_goals() -> None:
    figures = {each.name: each for each in wall_time_figures(drifting(3 * ROUNDS), 42, seed=0)}
    found = figures["measured, with a control: 3 % slower, found within 2 nights"]
    assert (found.goal, found.value) == (95.0, 100.0)
    assert figures["drift: false alarms in 200 nights of 20 rows"].goal == 1.0
    assert all(figure.is_met for figure in cycles_figures(5, seed=0))


@pytest.mark.slow
def test_a_history_is_written_scaled_and_opened(tmp_path: Path) -> None:
    figures = {each.name: each for each in history_figures(Scale(nights=2, repeats=3), tmp_path, 0)}
    assert 100 < figures["history: a row of a night"].value < 2000
    assert sum("to open it" in name for name in figures) == 1


@pytest.mark.slow
@pytest.mark.parametrize("browser", [True, False])
def test_a_page_is_written_and_opened_where_there_is_a_browser(
    browser: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not browser:
        monkeypatch.setenv("PATH", "")
    elif not shutil.which("chromium"):
        pytest.skip("no Chromium here")
    names = {each.name: each for each in page_figures(Scale(nights=1, repeats=3), tmp_path, 0)}
    opened = [each for name, each in names.items() if "to open" in name]
    assert all("of 500 rows, 3 nights" in name for name in names)
    assert [each.goal for each in opened] == ([1.0, 1.0] if browser else [None])


def test_the_command_tells_a_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missed = Figure(name="f", value=2.0, unit="", goal=1.0)
    monkeypatch.setattr(command, "measured_rounds", lambda _, count: drifting(count))
    for slow in ("history_figures", "page_figures", "night_figures", "killed_figures"):
        monkeypatch.setattr(command, slow, lambda *_: iter(()))
    monkeypatch.setattr(command, "wall_time_figures", lambda *_: iter([missed]))
    assert cli.main(["bench", "nightly", "--quick", "--json", "--gate"]) == 1
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert groups["verdicts by a clock"] == [missed.row()]
    assert [row["met"] for row in groups["verdicts by cycles"]] == [True, True]
    assert cli.main(["bench", "nightly", "--quick"]) == 0
    assert "<= 1  missed" in capsys.readouterr().out
