"""Names of files as text: on Linux they are bytes, and need not be any text at all."""

from __future__ import annotations

import os
from pathlib import Path


def readable(name: str | Path) -> str:
    r"""The name as text that every file, call and database takes; `\xff` for a byte that is none.

    For people and records, not for opening it again.
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")
