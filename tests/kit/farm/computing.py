"""Whether a kernel is at work: its process has used the processor."""

from __future__ import annotations

import os
from pathlib import Path


def computing(pid: int) -> bool:
    """Whether a process has used a twentieth of a second, which `slow` takes on any machine."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return int(fields[11]) > os.sysconf("SC_CLK_TCK") // 20
