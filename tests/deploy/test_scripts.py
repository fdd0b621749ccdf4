"""The shell scripts: how they are used, and a night that is compared with the accepted one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from .deployed import DEPLOY

TUNES = """#!/bin/sh
# A tilefarm that tunes at once: the summary of every network is the one at hand.
[ "$1" = tune ] || exec {tilefarm} "$@"
while [ "$1" != --out ]; do shift; done
mkdir -p "$2" && cp {summary} "$2/summary.json"
"""


@pytest.mark.parametrize(
    ("script", "words", "told"),
    [
        ("issue.sh", [], "issue.sh FOLDER TRACKER_HOST"),
        ("device/cross.sh", [], "cross.sh aarch64|armv7l"),
        ("device/cross.sh", ["sparc"], "cross.sh aarch64|armv7l"),
    ],
)
def test_a_script_that_is_called_wrongly_says_how(script: str, words: list[str], told: str) -> None:
    command: list[str | Path] = ["/bin/sh", DEPLOY / script, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith(("#", "set"))]


@pytest.fixture
def night(tmp_path: Path) -> list[str | Path]:
    programs, summary = tmp_path / "programs", tmp_path / "summary.json"
    programs.mkdir()
    tilefarm = Path(sys.executable).parent / "tilefarm"
    (programs / "tilefarm").write_text(TUNES.format(tilefarm=tilefarm, summary=summary))
    (programs / "tilefarm").chmod(0o755)
    path = f"PATH={programs}:{os.environ['PATH']}"
    script = DEPLOY / "kuberay" / "nightly.sh"
    return ["env", path, "NETWORKS=a b", "/bin/sh", script, tmp_path, "--priority", "-10"]


@pytest.mark.slow
def test_a_night_that_is_slower_than_the_accepted_one_fails(
    tmp_path: Path, night: list[str | Path]
) -> None:
    def run(cycles: int) -> tuple[int, str]:
        rows = [{"name": "conv", "best_cycles": cycles}]
        whole = {"target_digest": "d", "workloads": rows, "network_cycles": cycles}
        (tmp_path / "summary.json").write_text(json.dumps(whole))
        done = subprocess.run(night, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    assert run(1000) == (0, "4 same\n")
    first = (tmp_path / "accepted").resolve()
    assert date.fromisoformat(first.name)
    first.rename(tmp_path / "good-night")
    (tmp_path / "accepted").unlink()
    (tmp_path / "accepted").symlink_to("good-night")
    code, said = run(1100)
    assert code == 1
    assert "a: conv" in said
    assert "4 SLOWER" in said
