"""A disk that is full, for one process: no file of its own grows any more."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def fill_disk(pid: int) -> Callable[[], None]:
    """Fill it; gives what frees it again, if the process still lives."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))

    def free() -> None:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))

    return free


@contextmanager
def full_disk(pid: int) -> Iterator[None]:
    """The disk is full meanwhile."""
    free = fill_disk(pid)
    try:
        yield
    finally:
        free()
