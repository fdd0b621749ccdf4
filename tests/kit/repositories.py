"""Repositories of git for tests: by an author of their own, whatever the user's settings are."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(folder: Path, *words: str) -> str:
    """What git says in a folder.

    Raises:
        CalledProcessError: it fails.
    """
    author = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *author, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
