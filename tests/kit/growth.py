"""Whether memory grows with what is done again and again."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from itertools import pairwise


def growth_nbytes(once: Callable[[int], object], times: int = 1000, *, windows: int = 1) -> int:
    """By how much memory grows while something is done so many times, and has been before.

    The least of several windows of so many times: a table that is older than the measurement counts
    as new memory when it is made anew, once.
    """
    tracemalloc.start()
    try:
        levels = []
        for window in range(windows + 1):
            for number in range(window * times, (window + 1) * times):
                once(number)
            levels.append(_memory_nbytes())
        return min(after - before for before, after in pairwise(levels))
    finally:
        tracemalloc.stop()


def _memory_nbytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
