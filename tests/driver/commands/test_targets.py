"""`tilefarm targets`: what is built in, what a file means, and what cannot be simulated here."""

from __future__ import annotations

import json
import platform
from dataclasses import replace
from pathlib import Path

import pytest
from tilefarm.errors import TargetError
from tilefarm.target import TARGETS, Host, built_in_targets, target_from_document

from driver import cli
from driver.targets import playable_target, usable_target

VTA_CONFIG = {"TARGET": "ultra96", **json.loads(TARGETS["sim"].geometry.to_json())}


def targets(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert cli.main(["targets", *options]) == 0
    return capsys.readouterr().out


def test_every_target_has_a_line_that_says_what_runs_on_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = {line.split()[0]: line for line in targets(capsys).splitlines() if line}
    assert lines.keys() >= built_in_targets().keys()
    for word in ("64 bit", "100 MHz", "hls", "original", "armv7 cortex-a9", "shifts to 15"):
        assert word in lines["pynq-z1"]
    assert "ALU with MUL" in lines["sim-mul"]
    assert "x86_64 x86-64-v3" in lines["cpu:x86-64-v3"]
    assert max(map(len, lines.values())) <= 110


def test_json_has_every_target_with_its_digest(capsys: pytest.CaptureFixture[str]) -> None:
    for row in json.loads(targets(capsys, "--json")):
        digest = row.pop("digest")
        assert target_from_document(row, where="t").digest.hex == digest
        assert built_in_targets()[row["name"]].digest.hex == digest


def test_the_original_s_file_is_shown_as_a_target(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "vta_config.json"
    file.write_text(json.dumps({**VTA_CONFIG, "TARGET": "ultra96"}))
    shown = json.loads(targets(capsys, "--show", str(file)))
    assert target_from_document(shown, where="t") == usable_target(str(file))
    assert shown["host"]["cpu"] == "cortex-a53"


@pytest.mark.parametrize("name", [n for n in TARGETS if f"sim-{n}" in TARGETS])
def test_a_board_is_not_simulated_but_its_twin_is(name: str) -> None:
    assert usable_target(name) is TARGETS[name]
    with pytest.raises(TargetError, match=f"{name}: its host is a") as refused:
        playable_target(name)
    assert f"--target sim-{name}, the same accelerator" in refused.value.hint
    if TARGETS["sim"].host == Host():
        assert playable_target(f"sim-{name}") is TARGETS[f"sim-{name}"]


def test_a_file_for_another_host_is_told_what_to_leave_out(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(replace(TARGETS["pynq-z1"], name="mine").to_json())
    with pytest.raises(TargetError) as refused:
        playable_target(str(file))
    assert "without the section host" in refused.value.hint


@pytest.mark.skipif(platform.machine() == "aarch64", reason="that processor's kind is here")
def test_another_processor_is_told_to_take_the_one_that_is_here() -> None:
    with pytest.raises(TargetError, match="cpu:neoverse-n1: its host is aarch64") as refused:
        playable_target("cpu:neoverse-n1")
    assert refused.value.hint.startswith("--target cpu for the processor that is here")


def test_tuning_for_a_board_without_one_ends_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["demo", "--target", "pynq-z1", "--out", str(tmp_path / "out")]) == 2
    assert "--target sim-pynq-z1" in capsys.readouterr().err
