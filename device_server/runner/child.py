"""One runner child: a process that loads one artifact and can be killed at any time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from tilefarm.closing import Closing

from device_server.runner.accelerator import AcceleratorProcess
from device_server.runner.connection import Connection
from device_server.runner.disturbed import Disturbed, HostCounters, host_counters
from device_server.runner.frames import Reply, Request
from device_server.runner.last_words import LastWords
from device_server.runner.process import ChildProcess
from device_server.runner.scheduling import Scheduling

_REAP_SECONDS: Final = 5.0


class RunnerChild(Closing):
    """A started child and the connection to it. Calls block at most as long as they say.

    It takes a request to load an artifact, then requests to run it, and may be sent the next one
    before it has answered the last.

    Attributes:
        process: the child; accelerator: that which it has now.

    Args:
        connection: its other side is the child's; log: the child's standard error.
        accelerator: the process that plays its accelerator, which dies with it unless it is
            released; None where the child's own library does.
        threads: how many compute in it.
        asked_seconds: since when it may have requests, by the monotonic clock.
    """

    def __init__(
        self,
        pid: int,
        connection: Connection,
        log: LastWords,
        *,
        accelerator: AcceleratorProcess | None = None,
        threads: int = 1,
        asked_seconds: float = 0.0,
    ) -> None:
        self.process = ChildProcess(pid)
        self._scheduling = Scheduling(pid)
        self._connection = connection
        self._log = log
        self._threads = threads
        self.accelerator = accelerator
        self._asked_seconds = asked_seconds
        self._before = HostCounters()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def schedule(self, *, timed: bool) -> None:
        """Whether kernels are timed from now on, and so run undisturbed as far as they can."""
        if timed:
            self._scheduling.undisturbed()
            self._before = host_counters(self.process.pid)
        else:
            self._scheduling.ordinary()

    def send(self, request: Request) -> None:
        """Send it; the reply is `loaded` or `ran`."""
        self._asked_seconds = time.monotonic()
        self._connection.send(request)

    def loaded(self, within_seconds: float) -> Reply:
        """The reply to the request to load."""
        return self._connection.reply(within_seconds)

    def ran(self, within_seconds: float) -> Reply:
        """The reply to the next request to run. CPU time is bounded as well."""
        for process, seconds in self._budgets(within_seconds):
            process.bound_cpu_seconds(seconds)
        return self._connection.reply(within_seconds)

    @property
    def busy_seconds(self) -> float:
        """For how long it has had its last request: nothing that it did for that took longer."""
        return time.monotonic() - self._asked_seconds

    def disturbed(self) -> Disturbed:
        """What the host did to it since its kernels are timed."""
        return Disturbed(self._before, host_counters(self.process.pid))

    def last_words(self) -> str:
        """The end of what the child wrote to its standard error."""
        return self._log.text()

    def wait(self) -> int:
        """The exit status of a child that is dying by itself: negative for a signal.

        A child that takes too long to die is killed.
        """
        status = self.process.wait(_REAP_SECONDS)
        return status if status is not None else self._killed()

    def kill(self) -> None:
        """End it now, and its accelerator; from any thread, until it is closed."""
        self.process.kill()
        if self.accelerator is not None:
            self.accelerator.process.kill()

    def release_accelerator(self) -> AcceleratorProcess | None:
        """Its accelerator, which outlives it, for the next child; call `close` then."""
        released, self.accelerator = self.accelerator, None
        return released

    def close(self) -> None:
        """Kill the child and let go of everything. May be called again."""
        self.kill()
        if self.accelerator is not None:
            self.accelerator.close()
        self.process.wait()
        self._connection.close()
        self._log.close()

    def _killed(self) -> int:
        self.process.kill()
        status = self.process.wait()
        assert status is not None
        return status

    def has_time_for(self, budget_seconds: float) -> bool:
        """Whether so much more is within the processor time that it may take in its life."""
        budgets = self._budgets(budget_seconds)
        return all(process.has_time_for(seconds) for process, seconds in budgets)

    def _budgets(self, budget_seconds: float) -> Iterator[tuple[ChildProcess, float]]:
        """The processes that compute, and what all of their threads would use of that time."""
        yield self.process, budget_seconds * self._threads
        if self.accelerator is not None:
            yield self.accelerator.process, budget_seconds
