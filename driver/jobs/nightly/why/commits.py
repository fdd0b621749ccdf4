"""The commits between two nights, where the checkout that they were made from is at hand."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

_COMMIT: Final = re.compile("[0-9a-f]{7,64}")
_MOST: Final = 200
_SECONDS: Final = 20.0


def commits_between(checkout: Path, good: str, bad: str) -> tuple[str, ...]:
    """Lines `abc1234 title`, the newest first; empty if git does not know them.

    Args:
        checkout: a folder of the repository.
        good, bad: commits as `Order` has them; files that differ from one are beyond it.
    """
    names = [name.rstrip("+") for name in (good, bad)]
    if not all(map(_COMMIT.fullmatch, names)) or names[0] == names[1]:
        return ()
    command = ["git", "-C", str(checkout), "log", "--oneline", "--no-decorate", f"-{_MOST}"]
    try:
        done = subprocess.run(
            [*command, "..".join(names), "--"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(done.stdout.splitlines())
