"""Targets that there is no code for are refused where they are named, with every reason."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import pytest
from tilefarm.errors import TargetError
from tilefarm.model import MachineModel
from tilefarm.target import TARGETS, Host, Target

from driver.targets import (
    accelerated_target,
    playable_target,
    simulated_target,
    usable_target,
)

SIM = TARGETS["sim"]


def test_every_reason_why_no_code_can_be_made_is_listed(tmp_path: Path) -> None:
    lanes = replace(SIM.geometry, log_block=0, log_inp_buff_size=8, log_acc_buff_size=8)
    odd = replace(
        SIM,
        vta=replace(lanes, log_wgt_buff_size=8),
        host=Host(triple="pdp11-dec-unix", cpu=""),
        limits=replace(SIM.limits, acc_distance=2),
    )
    file = tmp_path / "odd.json"
    file.write_text(odd.to_json())
    with pytest.raises(TargetError) as refused:
        usable_target(str(file))
    assert "pdp11" in refused.value.what
    assert "vectors of at least two lanes" in refused.value.what
    assert "limits.acc_distance: 2, but VTA's runtime" in refused.value.what


def test_a_machine_that_no_device_here_is_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "toy.json"
    file.write_text(Target(name="mine", machine=MachineModel(kind="toy")).to_json())
    with pytest.raises(TargetError) as refused:
        usable_target(str(file))
    assert "machine.kind: 'toy', and devices here are vta or cpu" in refused.value.what
    assert "tilefarm targets --show sim" in refused.value.hint


def test_a_built_in_target_is_usable() -> None:
    assert usable_target("sim") == SIM


@pytest.mark.parametrize("name", ["cpu", "cpu:x86-64-v4", "cpu:x86-64-v3", "cpu:neoverse-n1"])
def test_there_is_code_for_processors_alone(name: str) -> None:
    assert usable_target(name).name == name


def test_a_command_that_wants_an_accelerator_says_that_a_target_has_none() -> None:
    for wanting in (accelerated_target, simulated_target):
        with pytest.raises(TargetError, match="cpu: this target has no accelerator") as refused:
            wanting("cpu")
        assert "sim, sim-de10" in refused.value.hint
    with pytest.raises(TargetError) as refused:
        simulated_target("cpu", on_processors="tilefarm bench processor")
    assert refused.value.hint.startswith("for a processor `tilefarm bench processor`; --target sim")
    assert accelerated_target("sim-mul").name == "sim-mul"
    assert playable_target("cpu").name == "cpu"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels are those of x86-64")
def test_a_processor_that_can_do_more_than_this_one_is_not_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tilefarm.processors.flags_here", lambda: ["sse4_1", "avx2"])
    with pytest.raises(TargetError, match="cpu:x86-64-v3: its host has abm, avx, bmi1") as refused:
        playable_target("cpu:x86-64-v3")
    assert "--target cpu" in refused.value.hint
