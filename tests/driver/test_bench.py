"""The figures of a benchmark, and what the doctor says."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
from tilefarm.errors import InfraError

from device_server import native
from driver import bench, cli, doctor
from driver.bench import DemoFigures, medians
from driver.doctor import Finding
from driver.steps.machine import machine, versions

FIGURES = DemoFigures(**{field.name: 1.0 for field in fields(DemoFigures)})


def test_every_figure_is_a_median() -> None:
    runs = [replace(FIGURES, total_seconds=s, speedup=s) for s in (9.0, 1.0, 2.0)]
    middle = medians(runs)
    assert (middle.total_seconds, middle.speedup, middle.trials_per_second) == (2.0, 2.0, 1.0)


def test_a_summary_becomes_figures() -> None:
    summary = {
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
    figures = bench._figures(summary, 20.0, 1 << 20)
    assert (figures.propose_seconds, figures.run_seconds) == (0.1, 0.4)
    assert figures.peak_nbytes == 1 << 20


def test_memory_of_a_process_is_known_and_of_none_is_nothing() -> None:
    assert bench._proportional_nbytes(os.getpid()) > 1 << 20
    assert bench._proportional_nbytes(1 << 30) == 0


def test_the_command_shows_medians(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "measure_demo", lambda words, clock: FIGURES)
    assert cli.main(["bench", "demo", "--runs", "2"]) == 0
    assert "first measured kernel" in capsys.readouterr().out
    assert cli.main(["bench", "demo", "--runs", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["median"] == asdict(FIGURES)
    assert len(document["runs"]) == 2


def test_a_failing_demo_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(words: object, clock: object) -> DemoFigures:
        raise InfraError("the demo ended with exit code 3")

    monkeypatch.setattr(bench, "measure_demo", fail)
    assert cli.main(["bench", "demo"]) == 70


def test_machine_and_versions_are_words() -> None:
    assert "cores" in machine()
    assert set(versions()) >= {"python", "numpy", "ray"}


def test_the_doctor_finds_this_machine_fit_to_run_tests() -> None:
    findings = {finding.subject: finding for finding in doctor.examine()}
    assert findings["python"].good
    assert findings["packages"].good
    assert findings["library"].good
    assert all(finding.repair or finding.good for finding in findings.values())


def test_the_doctor_names_the_repair(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = Finding(subject="linker", good=False, detail="none", repair="apt-get install binutils")
    monkeypatch.setattr(doctor, "examine", lambda: [bad])
    assert cli.main(["doctor"]) == 2
    assert capsys.readouterr().out.splitlines()[1] == "       try: apt-get install binutils"


def test_a_missing_library_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise InfraError("no library", "make setup")

    monkeypatch.setattr(native, "find_library", nowhere)
    library = next(f for f in doctor.examine() if f.subject == "library")
    assert (library.good, library.repair) == (False, "make setup")
