"""The one thread in which a device's runner is called, in turns; notices calls that do not end."""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeVar, cast

from tilefarm.errors import DeviceLostError
from tilefarm.threads import start_thread
from tilefarm.watch.log import Level, Log

from device_server.device.health_state import HealthState
from device_server.device.usage_counters import UsageCounters
from device_server.tenancy import Tenancy

_T = TypeVar("_T")

_LOOK_SECONDS: Final = 1.0
_LATE_SECONDS: Final = 0.5


class _Silent(Exception):
    """A call did not come back."""


class _Patience:
    """Gives a call up when its time is over, in looks. Lives in one event loop.

    One that comes late has seen this process stand still, and the call with it: it counts half.
    """

    def __init__(self, running: asyncio.Future[_T], seconds: float) -> None:
        self._running: asyncio.Future[Any] = running
        self._left_seconds = seconds
        self._loop = running.get_loop()
        self._wait()

    def cancel(self) -> None:
        self._timer.cancel()

    def _wait(self) -> None:
        self._look_seconds = min(self._left_seconds, _LOOK_SECONDS)
        self._began = self._loop.time()
        self._timer = self._loop.call_later(self._look_seconds, self._look)

    def _look(self) -> None:
        is_late = self._loop.time() - self._began > self._look_seconds + _LATE_SECONDS
        self._left_seconds -= self._look_seconds / 2 if is_late else self._look_seconds
        if self._left_seconds > 0:
            self._wait()
        elif not self._running.done():
            self._running.set_exception(_Silent())


class RunnerThread:
    """Calls that block, one at a time. Lives in one event loop.

    Args:
        device: the name to put into messages.
        condition: of the device; what hangs is noted there, for good.
        counters: of the device; it is busy during a call.
        grace_seconds: what a call may take beyond its own time before the device counts as hung.
    """

    def __init__(
        self,
        device: str,
        condition: HealthState,
        log: Log,
        *,
        counters: UsageCounters,
        grace_seconds: float,
    ) -> None:
        self.counters = counters
        self._device = device
        self._condition = condition
        self._log = log
        self._grace_seconds = grace_seconds
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        # The process must be able to end while a call hangs.
        self._thread = start_thread(self._main, name="runner", broken=self._break)
        self.turn = asyncio.Lock()
        """Held by whoever may call."""
        self.stuck = asyncio.Event()
        """Set when a call did not come back."""

    @asynccontextmanager
    async def turn_under(self, tenancy: Tenancy) -> AsyncIterator[None]:
        """The turn, for one who waits no longer than their lease lives.

        Raises:
            LeaseError: the lease has ended.
        """
        async with AsyncExitStack() as owned:
            await tenancy.during(owned.enter_async_context(self.turn))
            yield

    async def call(self, work: Callable[[], _T], within_seconds: float, *, what: str) -> _T:
        """What `work` returns; the caller has the turn.

        Args:
            work: may raise whatever it likes.
            within_seconds: its own time.
            what: in words, for the log and the reason.

        Raises:
            DeviceLostError: it did not come back; the thread is lost.
        """
        if self._condition.hung:
            raise DeviceLostError(f"device {self._device} {self._condition.hung}")
        running = self._begin(work)
        allowed_seconds = within_seconds + self._grace_seconds
        patience = _Patience(running, allowed_seconds)
        try:
            with self.counters.busy():
                return await running
        except _Silent:
            pass
        finally:
            patience.cancel()
        self._condition.hung = f"hangs: {what} did not come back within {allowed_seconds:g} s"
        self._log("hung", level=Level.ERROR, device=self._device, why=self._condition.hung)
        self.stuck.set()
        raise DeviceLostError(f"device {self._device} {self._condition.hung}")

    def close(self) -> None:
        """Waits for a call in progress, unless it hangs."""
        self._work.put(None)
        if not self._condition.hung:
            self._thread.join()

    def _begin(self, work: Callable[[], _T]) -> asyncio.Future[_T]:
        loop = self._loop = asyncio.get_running_loop()
        running: asyncio.Future[_T] = loop.create_future()

        def settle(result: _T | None, error: Exception | None) -> None:
            if running.done():
                return
            if error is not None:
                running.set_exception(error)
            else:
                running.set_result(cast("_T", result))

        def begin() -> None:
            result, error = None, None
            try:
                result = work()
            except Exception as raised:
                error = raised
            with contextlib.suppress(RuntimeError):  # The loop has ended meanwhile.
                loop.call_soon_threadsafe(settle, result, error)

        self._work.put(begin)
        return running

    def _break(self, error: Exception) -> None:
        """The thread has died: no call will ever come back."""
        self._condition.hung = f"is broken: its thread ended: {error!r}"
        self._log("broken", level=Level.ERROR, device=self._device, why=repr(error))
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.stuck.set)

    def _main(self) -> None:
        while (begin := self._work.get()) is not None:
            begin()
