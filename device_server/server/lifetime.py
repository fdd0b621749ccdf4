"""How a server process lives: it says when it serves, and ends by a signal or with its parent."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Final

from device_server.server.supervisor import supervisor

_PR_SET_PDEATHSIG: Final = 1
_YOUNG: Final = 10_000
"""Objects that are new before the collector looks among them: a few megabytes."""


def announce(address: str) -> None:
    """Tells whoever waits for it, a reader or a supervisor, that calls are answered now."""
    print(f"ready {address}", flush=True)
    supervisor().ready(address)


def run_until_stopped(
    main: Callable[[asyncio.Event], Awaitable[None]], *, die_with_parent: bool
) -> None:
    """Runs a server's main coroutine; SIGTERM and SIGINT set the event that it waits for.

    Args:
        main: starts, waits for the event, cleans up.
        die_with_parent: stop also when the thread that started this process ends (Linux only).
    """
    parent = os.getppid()
    if die_with_parent:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    async def body() -> None:
        stopping, watcher = asyncio.Event(), supervisor()
        loop = asyncio.get_running_loop()

        def stop() -> None:
            watcher.ending()
            stopping.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        if die_with_parent and os.getppid() != parent:
            return  # The parent went away before the signal was asked for.
        alive = asyncio.create_task(watcher.keep_alive())
        try:
            await main(stopping)
        finally:
            alive.cancel()

    # What is there by now stays: the collector need not hold up callers to look at it again, nor
    # look for what is new with every other call.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
    asyncio.run(body())
