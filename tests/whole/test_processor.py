"""From a network to a program that a processor alone runs: the commands, and what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kit.built import needs_simulator

from driver import cli

pytestmark = needs_simulator


def test_every_layer_is_the_reference_s_on_a_processor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["check", "zoo:digits", "--target", "cpu", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert {step["place"] for step in steps} == {"cpu"}
    assert len(steps) == 11


def test_a_network_is_tuned_for_a_processor_and_timed_by_its_clock(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["tune", "zoo:digits", "--target", "cpu", "--trials", "4", "--devices", "1", "--no-ray"]
    assert cli.main([*words, "--out", str(tmp_path)]) == 0
    assert "128 samples on the device, 0 differ from the reference" in capsys.readouterr().out
    manifest = json.loads((tmp_path / "program" / "manifest.json").read_text())
    assert manifest["target"]["machine"]["kind"] == "cpu"
    assert manifest["simulator"] == []
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["network_cycles"] is None
    assert summary["network_seconds"] > 0
    assert (tmp_path / "log" / "cpu0.log").is_file(), "no device is simulated"
