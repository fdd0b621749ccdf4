"""What lives when a search begins lives until it ends: the garbage collector need not look again.

A search makes little garbage that only the collector finds, and many records that stay.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

_YOUNG: Final = 10_000
"""Objects that are new before the collector looks among them: a few megabytes."""


@contextmanager
def gc_frozen() -> Iterator[None]:
    """Leave what is there now alone within the block, and look at what is new less often.

    In a process that was frozen for good it stays left alone: no part can be thawed.
    """
    thresholds, for_good = gc.get_threshold(), _frozen_for_good()
    gc.collect()
    gc.freeze()
    gc.set_threshold(max(_YOUNG, thresholds[0]) if thresholds[0] else 0, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        if not for_good:
            gc.unfreeze()


@cache
def _frozen_for_good() -> bool:
    """Whether the process was frozen before its first search: counted once, as that takes long.

    `gc.get_objects` would tell sooner, but hands out tuples that other threads have not finished,
    which then fail to grow.
    """
    return gc.get_freeze_count() > 0
