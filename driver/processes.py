"""Processes below another one: which they are, and the end of them all."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def descendants(root: int) -> list[int]:
    """All live processes below one, by /proc; nearest first."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
    found, queue = list[int](), [root]
    while queue:
        parent = queue.pop(0)
        below = [pid for pid, its_parent in parents.items() if its_parent == parent]
        found += below
        queue += below
    return found


def kill_descendants(root: int) -> None:
    """End everything below a process at once; fit for a signal handler.

    The process itself is held still meanwhile, so that it starts nothing new.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if root != os.getpid():
            os.kill(root, signal.SIGSTOP)
    for pid in descendants(root):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
