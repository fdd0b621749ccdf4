"""Processes of ours: which are below another one, the end of them all, and what one does."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Final

ASLEEP: Final = "S"
"""What a process does that waits for anything but a processor."""
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


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


def activity(pid: int) -> tuple[str, float]:
    """What a live process does just now, by /proc, and the seconds that it has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


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
