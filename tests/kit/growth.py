"""Whether memory grows with what is done again and again."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable


def growth_nbytes(once: Callable[[int], object], times: int = 1000) -> int:
    """By how much memory grows while something is done so many times, and has been before."""
    tracemalloc.start()
    try:
        for number in range(times):
            once(number)
        before = _memory_nbytes()
        for number in range(times, 2 * times):
            once(number)
        return _memory_nbytes() - before
    finally:
        tracemalloc.stop()


def _memory_nbytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
