"""How a server process ends: by a signal, or with the one that started it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


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
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        if die_with_parent and os.getppid() != parent:
            return  # The parent went away before the signal was asked for.
        await main(stopping)

    asyncio.run(body())
