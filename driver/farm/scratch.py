"""A run's temporary folder: its own, with a short path, and gone with it even when it was killed.

A lock that ends with its process tells a living run's folder from a dead one's; every run removes
the dead ones that it finds. A folder without a lock is that of a run that begins just now, or one
that was killed before it had the lock or while it tidied up: its age tells.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from tilefarm.system_errors import unwritable

_PREFIX: Final = "tilefarm-run-"
_LOCK: Final = "lock"
LONGEST: Final = 32
"""Ray puts UNIX sockets into it, whose whole path must stay below 108 bytes."""
_LOCKLESS_SECONDS: Final = 3600.0
"""A run takes milliseconds from its folder to the lock in it."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private folder while the context lasts."""
    folder = _make()
    lock = _locked(folder)
    try:
        for parent in {folder.parent, Path(tempfile.gettempdir())}:
            _sweep(parent)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()


def _make() -> Path:
    """A new folder with a short path; an `OutputError` where there is no place for it."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        if len(str(folder)) <= LONGEST:
            return folder
        folder.rmdir()
        return Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))
    except OSError as error:
        hint = "set TMPDIR to a folder that you can write"
        raise unwritable(error.filename or "a temporary folder", error, hint) from None


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
            status = folder.lstat()
            ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
            if ours and _is_dead(folder, age_seconds=time.time() - status.st_mtime):
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue


def _is_dead(folder: Path, *, age_seconds: float) -> bool:
    """Whether there is a lock that nobody holds, or none though there was time enough."""
    try:
        file = (folder / _LOCK).open()
    except FileNotFoundError:
        return age_seconds > _LOCKLESS_SECONDS
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
