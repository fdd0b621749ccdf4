"""The units: their commands are ours, systemd takes them, and their walls stand."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from .deployed import DEPLOY, commanded, served

UNITS = DEPLOY / "systemd"
TRACKER, DEVICE = "tilefarm-tracker.service", "tilefarm-device@.service"
INSTANCE = "tilefarm-device@board1.service"
NIGHT, TIMER = "tilefarm-nightly.service", "tilefarm-nightly.timer"
EXAMPLES = {TRACKER: "tracker.env", DEVICE: "device.env", NIGHT: "nightly.env"}
TARGETS = (
    *("sysinit", "basic", "network-online", "multi-user", "shutdown"),
    *("timers", "time-set", "time-sync"),
)
HIGHEST_EXPOSURE = {TRACKER: 1.5, INSTANCE: 2.5, NIGHT: 2.8}

needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="needs systemd-analyze"
)


def settings(unit: str) -> dict[str, list[str]]:
    """Every setting of a unit with its values, continued lines joined."""
    found: dict[str, list[str]] = {}
    for line in (UNITS / unit).read_text().replace("\\\n", " ").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def environment(unit: str) -> dict[str, str]:
    """The variables of a unit, by the example of its environment file, and systemd's own."""
    example = UNITS / EXAMPLES[unit]
    lines = (line for line in example.read_text().splitlines() if not line.startswith("#"))
    own = {"STATE_DIRECTORY": "/var/lib/tilefarm/x", "LOGS_DIRECTORY": "/var/log/tilefarm"}
    return own | dict(line.split("=", 1) for line in lines)


def command(unit: str) -> list[str]:
    """What an instance of the unit starts."""
    (text,) = settings(unit)["ExecStart"]
    values = environment(unit)
    text = re.sub(r"\$\{?([A-Z_]+)\}?", lambda found: values[found[1]], text)
    return shlex.split(text.replace("%i", "board1"))


@pytest.mark.parametrize(("unit", "server"), [(TRACKER, "tracker"), (DEVICE, "device")])
def test_a_unit_starts_a_server_with_options_that_it_has(unit: str, server: str) -> None:
    program, *options = command(unit)
    assert program == f"/opt/tilefarm/bin/tilefarm-{server}"
    args = served([server, *options])
    assert args.tls == Path("/etc/tilefarm", "tracker" if unit == TRACKER else "board1")
    assert args.audit.is_relative_to("/var/log/tilefarm")
    assert settings(unit)["Type"] == ["notify"]
    assert int(settings(unit)["WatchdogSec"][0]) >= 10


def test_the_night_is_a_command_that_there_is_and_goes_on_where_it_was_cut_off() -> None:
    program, *options = command(NIGHT)
    assert program == "/opt/tilefarm/bin/tilefarm"
    args = commanded(shlex.join(["tilefarm", *options]))
    assert args.zoo == Path("/etc/tilefarm/zoo.toml")
    assert args.history == Path("/var/lib/tilefarm/x")
    night = settings(NIGHT)
    assert (night["Type"], night["Restart"]) == (["oneshot"], ["on-failure"])
    assert {"1", "2"} == set(night["RestartPreventExitStatus"][0].split())
    assert settings(TIMER)["Persistent"] == ["yes"]


def test_what_a_board_opens_is_its_users_file() -> None:
    """A file that the unit may open is still closed to who is not in its group."""
    user = (UNITS / "tilefarm.sysusers").read_text().split("\nu ")[1].split()[0]
    assert settings("board.conf")["DeviceAllow"] == ["char-uio rw"]
    assert settings(DEVICE)["User"] == [user]
    assert (
        f'SUBSYSTEM=="uio", OWNER="root", GROUP="{user}", MODE="0660"'
        in (UNITS / "board.rules").read_text()
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A file system with the units installed, as far as systemd looks at one."""
    units = tmp_path / "etc" / "systemd" / "system"
    units.mkdir(parents=True)
    for target in TARGETS:
        (units / f"{target}.target").write_text("[Unit]\nDescription=stands in\n")
    programs = tmp_path / "opt" / "tilefarm" / "bin"
    programs.mkdir(parents=True)
    for program in ("tilefarm", "tilefarm-tracker", "tilefarm-device"):
        (programs / program).write_text("#!/bin/sh\n")
        (programs / program).chmod(0o755)
    shutil.copy(UNITS / NIGHT, units)
    shutil.copy(UNITS / TIMER, units)
    shutil.copy(UNITS / TRACKER, units)
    shutil.copy(UNITS / DEVICE, units / INSTANCE)
    drop_in = units / f"{INSTANCE}.d"
    drop_in.mkdir()
    shutil.copy(UNITS / "board.conf", drop_in)
    return tmp_path


@needs_systemd
@pytest.mark.parametrize("unit", [TRACKER, INSTANCE, NIGHT, TIMER])
def test_systemd_takes_the_units(root: Path, unit: str) -> None:
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", f"--root={root}", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize("unit", [TRACKER, INSTANCE, NIGHT])
def test_little_is_exposed(root: Path, unit: str) -> None:
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--root={root}", "--no-pager", unit],
        capture_output=True,
        text=True,
        check=True,
    )
    (exposure,) = re.findall(
        rf"Overall exposure level for {re.escape(unit)}: ([\d.]+)", judged.stdout
    )
    assert float(exposure) <= HIGHEST_EXPOSURE[unit]
