"""Whether a kernel is at work: its process has used the processor."""

from __future__ import annotations

from tilefarm.process_state import process_state


def computing(pid: int) -> bool:
    """Whether a process has used a twentieth of a second, which `slow` takes on any machine."""
    try:
        return process_state(pid).user_seconds > 1 / 20
    except OSError:
        return False
