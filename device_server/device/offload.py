"""What takes long with many bytes is done in a thread: the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

_T = TypeVar("_T")

QUICK_NBYTES: Final = 256 << 10
"""A piece of an upload: what is hashed and kept at once, as a thread takes longer to begin."""


async def offloaded(nbytes: int, work: Callable[[], _T]) -> _T:
    """What `work` on so many bytes gives."""
    return work() if nbytes <= QUICK_NBYTES else await asyncio.to_thread(work)
