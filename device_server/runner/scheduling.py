"""Where and when the kernels of a child run, as the server wants it: a kernel itself cannot choose.

One that is timed stays on a core, and goes before others there as far as the server may say so: on
a busy host whatever lasts longer than a turn of a few milliseconds would otherwise never run
undisturbed.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from device_server.runner.disturbed import core_of

_FIRST: Final = -20
"""The niceness of who goes before all that are not real-time; needs CAP_SYS_NICE, as root has."""


class Scheduling:
    """Of one child's main thread, which calls kernels. Does nothing once the child has ended.

    Where the system does not let it, the child runs as the system wants: what the runner times
    while it is moved or waits is thrown away.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._is_undisturbed = False

    def undisturbed(self) -> None:
        """On the core that the system has chosen last, before others."""
        if self._is_undisturbed:
            return
        self._is_undisturbed = True
        core = core_of(self._pid)
        if core is not None:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(self._pid, {core})
        self._go(_FIRST, among_sessions=_FIRST)

    def ordinary(self) -> None:
        """On all cores that this process may use, and no sooner than it."""
        if not self._is_undisturbed:
            return
        self._is_undisturbed = False
        with contextlib.suppress(OSError):
            os.sched_setaffinity(self._pid, os.sched_getaffinity(0))
        self._go(os.getpriority(os.PRIO_PROCESS, 0), among_sessions=0)

    def _go(self, niceness: int, *, among_sessions: int) -> None:
        """Before others, or after them. Some systems schedule sessions first: a child is one."""
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._pid, niceness)
        with contextlib.suppress(OSError):
            Path(f"/proc/{self._pid}/autogroup").write_text(str(among_sessions))
