"""The guide's commands, run as they are printed: on loopback, with free ports, few trials."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from .deployed import DEPLOY, ROOT

GUIDE = (DEPLOY / "README.md").read_text()
TRIALS = "--trials 10 --no-ray --workers 1"


def commands(step: int) -> str:
    """Everything that a step of the guide has a shell do."""
    section = GUIDE.split(f"## Step {step}:")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", section, flags=re.M | re.S))


def free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def on_loopback(script: str) -> str:
    """The same farm on loopback: its hosts' addresses there, ports that are free."""
    script = re.sub(r"\b10\.0\.0\.(\d+)", r"127.0.0.\1", script)
    for host, port in set(re.findall(r"(127\.0\.0\.\d+):(\d+)", script)):
        script = script.replace(f"{host}:{port}", f"{host}:{free_port(host)}")
    script, limited = re.subn("--trials 60", TRIALS, script)
    assert limited == 1
    return script


def run(script: str, folder: Path) -> str:
    """What a script prints, in a folder that has the source tree's `deploy`; it must succeed."""
    (folder / "deploy").symlink_to(DEPLOY)
    programs = Path(sys.executable).parent
    log = folder / "said"
    with log.open("w") as said:  # no pipe: servers that a failing script leaves would hold it open
        shell = subprocess.Popen(
            ["/bin/bash", "-euc", script],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        )
    try:
        shell.wait(timeout=600)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGTERM)
    assert shell.returncode == 0, log.read_text()
    return log.read_text()


def test_both_steps_have_commands() -> None:
    for step in (1, 2):
        assert commands(step).count("tilefarm tune") == 1
        assert "kill $(jobs -p)" in commands(step)


def test_the_guide_names_files_that_are_there() -> None:
    named = set(re.findall(r"\b(?:deploy|farm-keys)/[\w./@-]+", GUIDE))
    there = {name.rstrip(".") for name in named if name.startswith("deploy/")}
    assert there
    assert [name for name in there if not (ROOT / name).exists()] == []


@pytest.mark.slow
def test_step_1_one_laptop(tmp_path: Path) -> None:
    said = run(on_loopback(commands(1)), tmp_path)
    assert "sim0" in said
    assert "sim1" in said
    summary = json.loads((tmp_path / "digits" / "summary.json").read_text())
    assert summary["trials_this_session"] == 10


@pytest.mark.slow
def test_step_2_tls_tokens_and_signed_artifacts(tmp_path: Path) -> None:
    said = run(on_loopback(commands(2)), tmp_path)
    assert "board1 (device) for 127.0.0.2" in said
    assert "leased" in said or "Acquire" in said  # the audit of the tracker, printed
    summary = json.loads((tmp_path / "digits" / "summary.json").read_text())
    assert summary["trials_this_session"] == 10
    secrets = [p for p in (tmp_path / "farm-keys").rglob("*") if p.name in ("token", "ca.key")]
    assert len(secrets) == 5
    assert {path.stat().st_mode & 0o077 for path in secrets} == {0}
