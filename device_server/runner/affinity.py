"""Which core the kernels of a child run on, chosen by the server: a kernel itself cannot choose."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

_PROCESSOR: Final = 39 - 3
"""Of `/proc/PID/stat`, see proc(5): fields count from 1, and the third follows the name."""


class Affinity:
    """The cores of one child's main thread, which calls kernels. Does nothing once it has ended.

    Where the system does not let it, the child goes where the system wants: what the runner times
    while it changes cores is thrown away.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stays = False

    def stay(self) -> None:
        """On the core that the system has chosen last."""
        if self._stays:
            return
        with contextlib.suppress(OSError):
            os.sched_setaffinity(self._pid, {_core_of(self._pid)})
            self._stays = True

    def roam(self) -> None:
        """On all cores that this process may use."""
        if not self._stays:
            return
        with contextlib.suppress(OSError):
            os.sched_setaffinity(self._pid, os.sched_getaffinity(0))
            self._stays = False


def _core_of(pid: int) -> int:
    """The core on which the process runs, or ran last."""
    _, _, fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    return int(fields.split()[_PROCESSOR])
