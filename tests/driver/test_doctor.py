"""What the doctor says, and the words for this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from tilefarm.errors import InfraError
from tilefarm.power import PowerState

from device_server.vta.library import native
from driver import cli, doctor
from driver.doctor import DoctorFinding
from driver.environment import machine, versions


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
    bad = DoctorFinding(subject="packages", good=False, detail="missing: onnx", repair="make setup")
    monkeypatch.setattr(doctor, "examine", lambda: [bad])
    assert cli.main(["doctor"]) == 2
    assert capsys.readouterr().out.splitlines()[1] == "       try: make setup"


def test_a_laptop_on_battery_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    drained = PowerState(on_battery=True, governors=("powersave",))
    monkeypatch.setattr(doctor, "power_state", lambda: drained)
    clock = next(f for f in doctor.examine() if f.subject == "clock")
    assert not clock.good
    assert clock.detail == "on battery, frequency governor powersave"
    assert clock.repair.startswith("plug it in")


def test_a_missing_library_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise InfraError("no library", "make setup")

    monkeypatch.setattr(native, "find_library", nowhere)
    library = next(f for f in doctor.examine() if f.subject == "library")
    assert (library.good, library.repair) == (False, "make setup")
