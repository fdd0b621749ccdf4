"""Processes of ours: which are below another one, and the end of them all."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from tilefarm.process_state import process_state


def descendants(root: int) -> list[int]:
    """All live processes below one, by /proc; nearest first."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it has just ended
                parents[int(entry.name)] = process_state(int(entry.name)).parent
    found, queue = list[int](), [root]
    while queue:
        parent = queue.pop(0)
        below = [pid for pid, its_parent in parents.items() if its_parent == parent]
        found += below
        queue += below
    return found


def kill_descendants(root: int) -> None:
    """End everything below a process at once; fit for a signal handler.

    All are held still before the first is ended, so that none starts another one meanwhile, which
    would be nobody's child. The process itself stays so.
    """
    if root != os.getpid():
        _signal(root, signal.SIGSTOP)
    held: set[int] = set()
    while fresh := set(descendants(root)) - held:
        for pid in fresh:
            _signal(pid, signal.SIGSTOP)
        held |= fresh
    for pid in held:
        _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
