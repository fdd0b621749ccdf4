"""How strongly kernels are confined: what a device's words mean, and who may have it."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest
from tilefarm.digest import Digest
from tilefarm.lease import DeviceInfo
from tilefarm.sandbox import SandboxLevel
from tilefarm.server_options import add_sandbox_option

WEAK = "rlimits, no_new_privs, no capabilities"
USUAL = f"{WEAK}, two-stage seccomp"
STRONG = f"{USUAL}, Landlock ABI 7"
DEVICE = DeviceInfo(
    name="d",
    address="a:1",
    target=Digest.of(b""),
    runtime="r",
    sandbox=USUAL,
    epoch="e",
    labels=(("board", "de10"), ("sandbox", "landlock")),
)


@pytest.mark.parametrize(
    ("words", "level"),
    [
        (WEAK, SandboxLevel.NONE),
        (USUAL, SandboxLevel.SECCOMP),
        (STRONG, SandboxLevel.LANDLOCK),
        ("rlimits+no_new_privs+seccomp+landlock7", SandboxLevel.LANDLOCK),
        (f"{WEAK}, Landlock ABI 7", SandboxLevel.NONE),
        ("rlimits only (sanitizer build)", SandboxLevel.NONE),
        ("", SandboxLevel.NONE),
    ],
)
def test_words_have_a_level(words: str, level: SandboxLevel) -> None:
    assert SandboxLevel.of(words) is level


@pytest.mark.parametrize(
    ("words", "fits"),
    [(WEAK, ["none"]), (USUAL, ["none", "seccomp"]), (STRONG, ["none", "seccomp", "landlock"])],
)
def test_a_device_fits_who_wants_its_level_or_less(words: str, fits: list[str]) -> None:
    device = replace(DEVICE, sandbox=words)
    wanted = ["none", "seccomp", "landlock", "bubblewrap", ""]
    assert [level for level in wanted if device.has([("sandbox", level)])] == fits


def test_a_label_is_no_sandbox() -> None:
    assert ("sandbox", "landlock") in DEVICE.labels
    assert not DEVICE.has([("sandbox", "landlock")])
    assert DEVICE.has([("sandbox", "seccomp"), ("board", "de10"), ("clock", "cycles")])
    assert not DEVICE.has([("sandbox", "seccomp"), ("board", "other")])


def test_a_level_that_there_is_not_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_sandbox_option(parser.add_argument, "what")
    assert parser.parse_args(["--require-sandbox", "landlock"]).require_sandbox == "landlock"
    with pytest.raises(SystemExit):
        parser.parse_args(["--require-sandbox", "strong"])
    assert "'strong' is none of none, seccomp, landlock" in capsys.readouterr().err
