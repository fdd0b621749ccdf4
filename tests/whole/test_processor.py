"""From a network to a program that a processor alone runs: the commands, and what they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from kit.built import needs_simulator
from tilefarm.measurement import Precision

from driver import cli
from driver.network.examples import DEMO_TEST

pytestmark = needs_simulator


def test_every_layer_is_the_reference_s_on_a_processor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["check", "zoo:digits", "--target", "cpu", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert {step["place"] for step in steps} == {"cpu"}
    assert len(steps) == 10


def test_a_network_is_tuned_for_a_processor_and_timed_by_its_clock(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rough = Precision(error=0.5, seconds=0.02)  # every layer is timed for a while, however well
    monkeypatch.setattr("driver.program.profile.PRECISION", rough)
    words = ["tune", "zoo:digits", "--target", "cpu", "--trials", "4", "--devices", "1"]
    words += ["--no-ray", "--workers", "1"]
    assert cli.main([*words, "--out", str(tmp_path)]) == 0
    assert "128 samples on the device, 0 differ from the reference" in capsys.readouterr().out
    manifest = json.loads((tmp_path / "program" / "manifest.json").read_text())
    assert manifest["target"]["machine"]["kind"] == "cpu"
    assert manifest["simulator"] == []
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["network_cycles"] is None
    assert summary["network_seconds"] > 0
    assert (tmp_path / "log" / "cpu0.log").is_file(), "no device is simulated"
    _is_run(tmp_path / "program", tmp_path / "answers.npz", capsys)
    _is_replayed(tmp_path, capsys)


def _is_run(program: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`tilefarm run` gives answers; with --profile, what each layer takes by the clock."""
    capsys.readouterr()
    words = ["run", str(program), "--input", str(DEMO_TEST), "--target", "cpu"]
    assert cli.main([*words, "--devices", "1", "--out", str(out), "--profile", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["target"], told["cycles"]) == ("cpu", None)
    assert told["profile"]["clock"] == "seconds"
    assert all(layer["median_seconds"] >= 0 for layer in told["profile"]["layers"])
    with np.load(DEMO_TEST) as data, np.load(out) as answers:
        (scores,) = (answers[name] for name in answers.files)
        assert (scores.reshape(len(scores), -1).argmax(axis=1) == data["y"]).mean() > 0.9


def _is_replayed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`tilefarm replay` makes the same object again."""
    assert cli.main(["replay", "--out", str(folder), "--json"]) == 0
    kept = json.loads(capsys.readouterr().out)
    assert {row["status"] for row in kept} == {"ok"}
    (conv, *_) = (row for row in kept if "conv2d" in row["compiles"])
    assert conv["compiles"].endswith("steps, cpu")
    assert cli.main(["replay", conv["digest"], "--out", str(folder), "--ir"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("verdict  ok: ")
    assert any(line.startswith("IR after ") for line in lines)
