"""What a server does in the background: a task that fails ends the server, which says why."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def until(stopping: asyncio.Event, background: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Waits for the stop, while what has no end goes on; the first that fails ends the wait."""
    tasks = [asyncio.create_task(each) for each in (stopping.wait(), *background)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
