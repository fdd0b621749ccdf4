"""One runner child: a process that loads one artifact and can be killed at any time."""

from __future__ import annotations

import contextlib
import math
import resource
import time
from typing import Final

from tilefarm.closing import Closing

from device_server.runner.connection import Connection
from device_server.runner.frames import Reply, Request
from device_server.runner.last_words import LastWords
from device_server.runner.process import ChildProcess
from device_server.runner.scheduling import Scheduling

_REAP_SECONDS: Final = 5.0


class RunnerChild(Closing):
    """A started child and the connection to it. Calls block at most as long as they say.

    It takes a request to load an artifact, then requests to run it, and may be sent the next one
    before it has answered the last.

    Args:
        connection: its other side is the child's; log: the child's standard error.
        threads: how many compute in it.
    """

    def __init__(
        self, pid: int, connection: Connection, log: LastWords, *, threads: int = 1
    ) -> None:
        self._process = ChildProcess(pid)
        self._scheduling = Scheduling(pid)
        self._connection = connection
        self._log = log
        self._threads = threads

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def schedule(self, *, timed: bool) -> None:
        """Whether kernels are timed from now on, and so run undisturbed as far as they can."""
        if timed:
            self._scheduling.undisturbed()
        else:
            self._scheduling.ordinary()

    def send(self, request: Request) -> None:
        """Send it; the reply is `loaded` or `ran`."""
        self._connection.send(request)

    def loaded(self, within_seconds: float) -> Reply:
        """The reply to the request to load."""
        return self._connection.reply(within_seconds)

    def ran(self, within_seconds: float) -> Reply:
        """The reply to the next request to run. CPU time is bounded as well."""
        self._bound_cpu_seconds(within_seconds)
        return self._connection.reply(within_seconds)

    def last_words(self) -> str:
        """The end of what the child wrote to its standard error."""
        return self._log.text()

    def wait(self) -> int:
        """The exit status of a child that is dying by itself: negative for a signal.

        A child that takes too long to die is killed.
        """
        status = self._process.wait(_REAP_SECONDS)
        return status if status is not None else self._killed()

    def kill(self) -> None:
        """End it now; from any thread, until it is closed."""
        self._process.kill()

    def close(self) -> None:
        """Kill the child and let go of everything. May be called again."""
        self._killed()
        self._connection.close()
        self._log.close()

    def _killed(self) -> int:
        self._process.kill()
        status = self._process.wait()
        assert status is not None
        return status

    def has_time_for(self, budget_seconds: float) -> bool:
        """Whether so much more is within the processor time that it may take in its life."""
        with contextlib.suppress(OSError):
            _, most = resource.prlimit(self._process.pid, resource.RLIMIT_CPU)
            return most == resource.RLIM_INFINITY or self._cpu_seconds(budget_seconds) <= most
        return False

    def _bound_cpu_seconds(self, budget_seconds: float) -> None:
        """A net below the wall-clock limit: the kernel signals a child whose parent forgot it."""
        with contextlib.suppress(OSError):
            _, most = resource.prlimit(self._process.pid, resource.RLIMIT_CPU)
            soft = self._cpu_seconds(budget_seconds)
            if most != resource.RLIM_INFINITY:
                soft = min(soft, most)
            resource.prlimit(self._process.pid, resource.RLIMIT_CPU, (soft, most))

    def _cpu_seconds(self, budget_seconds: float) -> int:
        """What it has used and what all of its threads would use."""
        # The clock of another process's CPU time, as clock_getcpuclockid makes it.
        used_seconds = time.clock_gettime((~self._process.pid << 3) | 2)
        return math.ceil(used_seconds + budget_seconds * self._threads) + 1
