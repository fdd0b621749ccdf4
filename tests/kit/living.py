"""Whether a process still lives."""

from __future__ import annotations

from tilefarm.process_state import process_state


def lives(pid: int) -> bool:
    """Whether it runs, or could: one that ended and that nobody asked about lives no more."""
    try:
        return process_state(pid).does != "Z"
    except OSError:
        return False
