"""The shell scripts: how they are used."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .deployed import DEPLOY


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
