"""What a step has freed is the system's again."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from driver.tune.freed_memory import return_freed_memory

_NBYTES = 100_000
"""Of one of many: below the size from which on glibc asks the system for each by itself."""


def resident_nbytes() -> int:
    """Of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="no glibc here")
def test_pages_below_something_that_lives_are_given_back() -> None:
    freed = [bytearray(_NBYTES) for _ in range(1000)]
    kept = bytearray(_NBYTES)
    full = resident_nbytes()
    del freed
    return_freed_memory()
    assert full - resident_nbytes() > 500 * _NBYTES
    assert len(kept) == _NBYTES
