"""`tilefarm bench demo`: its figures, their medians, and what the command prints."""

from __future__ import annotations

import json

import pytest
from tilefarm.errors import InfraError

from driver import cli
from driver.benchmarks import demo
from driver.benchmarks.demo import DemoFigures, medians

SUMMARY = {
    "trials_this_session": 10,
    "split": {
        "propose_seconds": 1.0,
        "compile_seconds": 2.0,
        "transfer_seconds": 3.0,
        "run_seconds": 4.0,
    },
    "first_measured_seconds": 2.5,
    "trials_per_second": 8.0,
    "default_cycles": 900,
    "best_cycles": 300,
    "speedup": 3.0,
    "accuracy": {"differing": 0},
}
FIGURES = demo.figures_of(SUMMARY, 20.0, 1 << 20)


def test_every_figure_is_a_median() -> None:
    runs = [{**FIGURES, "total_seconds": s, "speedup": s} for s in (9.0, 1.0, 2.0)]
    middle = medians(runs)
    assert (middle["total_seconds"], middle["speedup"], middle["best_cycles"]) == (2.0, 2.0, 300)


def test_a_summary_becomes_figures() -> None:
    assert dict(FIGURES) == {
        "total_seconds": 20.0,
        "first_measured_seconds": 2.5,
        "trials_per_second": 8.0,
        "propose_seconds": 0.1,
        "compile_seconds": 0.2,
        "transfer_seconds": 0.3,
        "run_seconds": 0.4,
        "default_cycles": 900,
        "best_cycles": 300,
        "speedup": 3.0,
        "peak_nbytes": 1 << 20,
        "differing": 0,
    }


def test_the_command_shows_medians(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "measure_demo", lambda words, clock: FIGURES)
    assert cli.main(["bench", "demo", "--runs", "2"]) == 0
    assert "first measured kernel" in capsys.readouterr().out
    assert cli.main(["bench", "demo", "--runs", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["median"] == FIGURES
    assert len(document["runs"]) == 2


def test_a_failing_demo_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(words: object, clock: object) -> DemoFigures:
        raise InfraError("the demo ended with exit code 3")

    monkeypatch.setattr(demo, "measure_demo", fail)
    assert cli.main(["bench", "demo"]) == 70
