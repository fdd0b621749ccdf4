"""What lives when a search begins lives until it ends: the garbage collector need not look again.

A search makes little garbage that only the collector finds, and many records that stay.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_YOUNG: Final = 10_000
"""Objects that are new before the collector looks among them: a few megabytes."""


@contextmanager
def gc_frozen() -> Iterator[None]:
    """Leave what is there now alone within the block, and look at what is new less often.

    Where most of it was left alone before, all of it is afterwards: no part can be thawed alone.
    """
    thresholds, before = gc.get_threshold(), gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    added = gc.get_freeze_count() - before
    gc.set_threshold(max(_YOUNG, thresholds[0]) if thresholds[0] else 0, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        if added > before:
            gc.unfreeze()
