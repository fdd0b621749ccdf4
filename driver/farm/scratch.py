"""A run's temporary folder: its own, with a short path, and gone with it even when it was killed.

A lock that ends with its process tells a living run's folder from a dead one's; every run removes
the dead ones that it finds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

_PREFIX: Final = "tilefarm-run-"
_LOCK: Final = "lock"
_LONGEST: Final = 32
"""Ray puts UNIX sockets into it, whose whole path must stay below 108 bytes."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private folder while the context lasts."""
    folder = _make()
    lock = _locked(folder)
    try:
        _sweep(folder.parent)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()


def _make() -> Path:
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    if len(str(folder)) <= _LONGEST:
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))


def _locked(folder: Path) -> IO[Any]:
    """The lock, held before it has the name under which others look for it."""
    draft = folder / f".{_LOCK}"
    file = draft.open("w")
    fcntl.flock(file, fcntl.LOCK_EX)
    draft.rename(folder / _LOCK)
    return file


def _sweep(parent: Path) -> None:
    """Remove what runs of this user left that were killed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            if folder.stat().st_uid == os.getuid() and _is_dead(folder):
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue


def _is_dead(folder: Path) -> bool:
    """Whether there is a lock that nobody holds."""
    with (folder / _LOCK).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
