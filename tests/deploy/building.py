"""One builder at a time: all that is built in this tree for a processor uses the same folder."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .deployed import DEPLOY


@contextmanager
def building(tree: Path = DEPLOY.parent) -> Iterator[None]:
    """Waits until no other process that tests in this tree builds there."""
    (tree / "build").mkdir(exist_ok=True)
    with (tree / "build" / "device.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
