"""Python processes that we start: none of them imports from the current folder.

Python puts the current folder in front of everything that it imports when it is told `-m` or `-c`.
It is the user's folder, and a `random.py` there is none of ours to execute.
"""

from __future__ import annotations

import os
import sys
from typing import Final

SHIELDED: Final = {"PYTHONSAFEPATH": "1"}
"""The environment in which a Python process does not import from the current folder."""


def python_command(*words: str, interpreter: str = "") -> list[str]:
    """The command of a Python process, without the current folder in its path.

    Args:
        words: `-m module`, `-c code` or a script, and arguments.
        interpreter: its path; empty: the one that runs this.
    """
    return [interpreter or sys.executable, "-P", *words]


def shield_children() -> None:
    """The same for what libraries start, by this process's environment."""
    os.environ.update(SHIELDED)
