"""What a server does in the background: a duty that fails ends the server, which says why."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def until(stopping: asyncio.Event, duties: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Waits for the stop, while what has no end goes on; the first that fails ends the wait."""
    tasks = [asyncio.create_task(duty) for duty in (stopping.wait(), *duties)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
