"""One lease on a device, from its first call to its end: what goes on under it ends with it."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from tilefarm.errors import LeaseError

_T = TypeVar("_T")


class Tenancy:
    """Who uses a device, and whether they still may. Thread-safe.

    Two of them are never equal: what one leaves behind, a process above all, is not for the next.

    Args:
        lease: its id.
        fence: its fence.
        user: whose it is; empty on a farm with one secret, and for the device's own runs.
    """

    def __init__(self, *, lease: str = "", fence: int = 0, user: str = "") -> None:
        self.lease = lease
        self.fence = fence
        self.user = user
        self._lock = threading.RLock()
        self._over = ""
        self._stops: dict[int, Callable[[], object]] = {}
        self._numbers = itertools.count()

    @property
    def over(self) -> str:
        """Why it has ended; empty while it lives."""
        return self._over

    def end(self, why: str) -> None:
        """Nothing is done under it any more; what goes on is told to stop. May be called again."""
        with self._lock:
            self._over = self._over or why
            for stop in self._stops.values():
                stop()
            self._stops.clear()

    def require(self) -> None:
        """Nothing if it lives.

        Raises:
            LeaseError: it has ended.
        """
        if self._over:
            raise LeaseError(f"lease {self.lease!r} is over: {self._over}", "lease anew")

    @contextmanager
    def stopping(self, stop: Callable[[], object]) -> Iterator[None]:
        """Within, `stop` is called when it ends, by whoever ends it; at once if it has ended.

        It is not called any more once the block is left, and must not block.
        """
        with self._lock:
            number = next(self._numbers)
            if self._over:
                stop()
            else:
                self._stops[number] = stop
        try:
            yield
        finally:
            with self._lock:
                self._stops.pop(number, None)

    async def during(self, work: Awaitable[_T]) -> _T:
        """What `work` gives; it is cancelled if the lease ends before.

        Raises:
            LeaseError: the lease has ended.
        """
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
        with self.stopping(lambda: loop.call_soon_threadsafe(task.cancel)):
            try:
                return await task
            except asyncio.CancelledError:
                caller = asyncio.current_task()
                if caller is None or not caller.cancelling():
                    self.require()
                raise


OWN: Final = Tenancy()
"""The device's own runs, which never ends."""
