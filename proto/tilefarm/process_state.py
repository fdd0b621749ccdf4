"""What Linux says of a process in one line: /proc/PID/stat, see proc(5)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ASLEEP: Final = "S"
"""What a process does that waits for anything but a processor."""
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_PROC: Final = Path("/proc")
_LAST_FIELD: Final = 39


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """A process at one moment.

    Args:
        does: a letter: R for running, S for asleep, Z for ended.
        parent: its number.
        user_seconds, system_seconds: what it has computed so far, in itself and in the kernel.
        children_seconds: what those of its children that ended have computed, with theirs.
        began_ticks: when it began, in ticks of the machine's clock.
        core: on which it runs, or ran last.
    """

    does: str
    parent: int
    user_seconds: float
    system_seconds: float
    children_seconds: float
    began_ticks: int
    core: int

    @property
    def seconds(self) -> float:
        """What it has computed so far, without its children."""
        return self.user_seconds + self.system_seconds


def process_state(pid: int, proc: Path = _PROC) -> ProcessState:
    """The state of a process now.

    Raises:
        OSError: there is no such process, or nobody tells what it does.
    """
    text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    fields = ["", "", *text.rpartition(")")[2].split()]  # a name may have any characters
    if len(fields) < _LAST_FIELD:
        raise ProcessLookupError(f"nothing is told of process {pid}")
    user, system, *children = (int(each) / _TICKS_PER_SECOND for each in fields[13:17])
    return ProcessState(
        does=fields[2],
        parent=int(fields[3]),
        user_seconds=user,
        system_seconds=system,
        children_seconds=sum(children),
        began_ticks=int(fields[21]),
        core=int(fields[38]),
    )
