"""The known kernel on the simulator: right for every geometry, with the cycles that are written."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from kit.built import needs_simulator
from tilefarm.errors import SelfTestError
from tilefarm.measurement import DeviceClock
from tilefarm.target import TARGETS, Host, Target, VtaConfig, impossibilities

from device_server.device.known_kernel import KNOWN_CYCLES, known_kernel
from device_server.device.self_test import known_kernel_for, self_test
from driver import cli

pytestmark = needs_simulator


def target(block: int, batch: int = 0, *, inp: int = 15, wgt: int = 18, acc: int = 17) -> Target:
    made = Target(
        name="own",
        vta=VtaConfig(
            log_batch=batch,
            log_block=block,
            log_inp_buff_size=inp,
            log_wgt_buff_size=wgt,
            log_acc_buff_size=acc,
        ),
    )
    assert not impossibilities(made)
    return made


OWN = {
    "two samples, eight lanes": target(3, 1, inp=14, wgt=16, acc=16),
    "sixty-four lanes": target(6),
    "one lane": target(0, inp=4, wgt=8, acc=6),
    "one element a buffer": replace(
        target(4, inp=4, wgt=8, acc=6),
        vta=replace(target(4, inp=4, wgt=8, acc=6).geometry, log_uop_buff_size=4),
    ),
}


@pytest.mark.parametrize("name", [n for n, t in TARGETS.items() if t.host == Host()])
def test_every_built_in_target_passes_with_known_cycles(name: str) -> None:
    known = known_kernel(TARGETS[name], b"")
    assert known.cycles
    assert self_test(TARGETS[name], runtime=None, device="d").cycles == known.cycles


@pytest.mark.parametrize("name", OWN)
def test_targets_of_ones_own_pass(name: str) -> None:
    assert known_kernel(OWN[name], b"").cycles is None
    proof = self_test(OWN[name], runtime=None, device="d")
    assert proof.cycles
    assert (proof.clock, proof.wall_time) == (DeviceClock.CYCLES, None)


def test_known_cycles_name_built_in_targets() -> None:
    assert KNOWN_CYCLES.keys() <= TARGETS.keys()


def test_another_geometry_has_another_answer() -> None:
    answers = {self_test(t, runtime=None, device="d").answer for t in OWN.values()}
    assert len(answers) == len(OWN)


def test_a_target_of_another_machine_is_told() -> None:
    arm = replace(TARGETS["sim"], host=Host(triple="armv7-unknown-linux-gnueabihf"))
    with pytest.raises(SelfTestError, match="none for target sim: not a 32-bit") as refused:
        known_kernel_for(arm)
    assert "--target" in refused.value.hint


def test_a_library_that_is_none_fails_the_self_test(tmp_path: Path) -> None:
    (tmp_path / "libvta.so").write_text("no library")
    with pytest.raises(SelfTestError, match="fails its self-test: the known kernel ends as load_e"):
        self_test(TARGETS["sim"], runtime=tmp_path / "libvta.so", device="d")


def test_the_self_test_needs_no_numpy() -> None:
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "from tilefarm.target import TARGETS\n"
        "from device_server.device.self_test import self_test\n"
        "print(self_test(TARGETS['sim'], runtime=None, device='d').cycles)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == str(KNOWN_CYCLES["sim"]), done.stderr


def test_the_command_prints_what_the_known_kernel_gave(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["device", "--self-test", "--target", "sim-de10"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("self-test of sim-de10: right answer, ")
    assert first.endswith(" 1336 cycles")
    assert second.startswith("runtime: tilefarm-vta")


def test_the_command_ends_with_70_where_the_device_is_not_right(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "libvta.so").write_text("no library")
    assert cli.main(["device", "--self-test", "--runtime", str(tmp_path / "libvta.so")]) == 70
    assert "fails its self-test" in capsys.readouterr().err


def test_the_command_on_a_full_disk_says_that_nothing_was_tested() -> None:
    program = (
        "import resource, sys\n"
        "from driver import cli\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))\n"
        "sys.exit(cli.main(['device', '--self-test']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 70
    assert "cannot make a temporary folder: " in done.stderr
    assert "\n  try: free some space" in done.stderr


def test_a_device_without_a_name_is_told_of_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["device"]) == 2
    assert "--name and --tracker, or --self-test alone\n  try: --name" in capsys.readouterr().err
