"""Files that readers see old or new, never half."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from tilefarm.errors import SettingsError
from tilefarm.system_errors import unwritable


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file that readers see old or new, never half; a pipe or a device takes what it gets.

    Raises:
        OutputError: it cannot be written; `DiskError` where the disk is full.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=_prefix(path))
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(draft).chmod(mode)
            Path(draft).replace(path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise unwritable(path, error) from None


def require_another(out: Path, read: Path) -> None:
    """Nothing if what is written leaves a file alone that is read.

    Raises:
        SettingsError: it would be lost.
    """
    if out.exists() and read.exists() and out.samefile(read):
        raise SettingsError(f"{out}: is {read}, which would be lost", "name another file")


def drafts(path: Path) -> list[Path]:
    """What processes that were killed while they wrote a file left of it."""
    return [each for each in path.parent.iterdir() if each.name.startswith(_prefix(path))]


def _prefix(path: Path) -> str:
    return f".{path.name}-"
