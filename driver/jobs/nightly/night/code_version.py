"""Which code a night measures: its commit where there is a checkout, its digest always."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from tilefarm.code import code_folder

from driver.environment import versions

_SECONDS: Final = 20.0
_CHANGED: Final = "+"
"""Behind a commit from which files differ."""


def version() -> str:
    """Of tilefarm, as it is installed."""
    return versions()["tilefarm"]


def checkout() -> Path | None:
    """The top of the checkout that this very code lies in; None where it is installed elsewhere."""
    folder = code_folder("driver")
    top = _git(folder, "rev-parse", "--show-toplevel").strip()
    return Path(top) if top and Path(top).resolve() == folder.parent.resolve() else None


def commit(of: Path | None) -> str:
    """Of a checkout, with "+" where files differ from it; "" without one."""
    if of is None:
        return ""
    name = _git(of, "rev-parse", "HEAD").strip()
    changed = bool(_git(of, "status", "--porcelain", "--untracked-files=no").strip())
    return name + _CHANGED * changed if name else ""


def _git(folder: Path, *words: str) -> str:
    """What git says; nothing where there is none, or no repository."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
