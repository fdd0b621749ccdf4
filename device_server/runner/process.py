"""A child process that this one did not start itself, but may wait for and kill."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
import threading
import time
from typing import Final

_LOOK_SECONDS: Final = 0.002
_LONGEST_LOOK_SECONDS: Final = 0.05


class ChildProcess:
    """A child of this process by its number, which nobody else waits for. Thread-safe."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        # Whoever kills must not be told meanwhile that it ended: its number may then be another's.
        self._lock = threading.Lock()
        self._status: int | None = None

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        with self._lock:
            return self._polled()

    def wait(self, within_seconds: float | None = None) -> int | None:
        """The exit status as soon as there is one; None if there is none within that time."""
        if within_seconds is None:
            with contextlib.suppress(ChildProcessError):  # Another thread has heard of its end.
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            return self.poll()
        deadline, pause_seconds = time.monotonic() + within_seconds, _LOOK_SECONDS
        while (status := self.poll()) is None and time.monotonic() < deadline:
            time.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_LOOK_SECONDS)
        return status

    def kill(self) -> None:
        """End it now; nothing if it has ended."""
        with self._lock:
            if self._polled() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)

    def has_time_for(self, budget_seconds: float) -> bool:
        """Whether so much more is within the processor time that it may take in its life."""
        with contextlib.suppress(OSError):
            _, most = resource.prlimit(self.pid, resource.RLIMIT_CPU)
            return most == resource.RLIM_INFINITY or self._cpu_seconds(budget_seconds) <= most
        return False

    def bound_cpu_seconds(self, budget_seconds: float) -> None:
        """A net below the wall-clock limit: the kernel signals a child whose parent forgot it."""
        with contextlib.suppress(OSError):
            _, most = resource.prlimit(self.pid, resource.RLIMIT_CPU)
            soft = self._cpu_seconds(budget_seconds)
            if most != resource.RLIM_INFINITY:
                soft = min(soft, most)
            resource.prlimit(self.pid, resource.RLIMIT_CPU, (soft, most))

    def _cpu_seconds(self, budget_seconds: float) -> int:
        """What it has used, and what it would use."""
        # The clock of another process's CPU time, as clock_getcpuclockid makes it.
        used_seconds = time.clock_gettime((~self.pid << 3) | 2)
        return math.ceil(used_seconds + budget_seconds) + 1

    def _polled(self) -> int | None:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status
