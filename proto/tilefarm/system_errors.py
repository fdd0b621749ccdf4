"""What the system says about a file or folder, as an error of ours: which, why, what to try."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from tilefarm.errors import DataError, DiskError, OutputError, TilefarmError, UserError

_DISK_HINTS: Final = {
    errno.ENOSPC: "free some space; the same command then goes on",
    errno.EDQUOT: "free some of your quota; the same command then goes on",
    errno.EFBIG: "lift the limit on the size of files (`ulimit -f`); the same command then goes on",
    errno.EIO: "see to the disk (`dmesg` says more); the same command then goes on",
    errno.ESTALE: "mount the folder again; the same command then goes on",
}
"""The disk's trouble: what was asked is right, and works once it is over."""

_PATH_HINTS: Final = {
    errno.EACCES: "`ls -ld` on it and on the folders above it says who may; or name another place",
    errno.EPERM: "`ls -ld` and `lsattr -d` on it say who may; or name another place",
    errno.EEXIST: "`ls -ld` shows what is there already; name another place",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "`ls -l` shows the link that leads back to itself",
    errno.ENOTDIR: "one of the folders in its name is a file; name another place",
    errno.EISDIR: "name a file: this is a folder",
    errno.EROFS: "name a place that can be written",
}
"""What is wrong with a name that the user gave."""

_ELSEWHERE: Final = "name a place that you can write"


def unreadable(path: Path | str, error: OSError, hint: str) -> UserError:
    """Something that the user gave cannot be read."""
    return DataError(f"{path}: cannot be read: {_reason(error)}", hint)


def unwritable(path: Path | str, error: OSError, hint: str = "") -> OutputError:
    """A file or folder cannot be written; `hint` says what to try if that is not the disk."""
    what = f"{path}: cannot be written: {_reason(error)}"
    if error.errno in _DISK_HINTS:
        return DiskError(what, _DISK_HINTS[error.errno])
    return OutputError(what, hint or _PATH_HINTS.get(error.errno or 0, _ELSEWHERE))


def of_the_system(error: OSError, *, folder: Path | None = None) -> TilefarmError | None:
    """An error that nobody expected where it came; None if it may be a fault of ours.

    Args:
        error: of a call of the system.
        folder: what the command writes to; what is gone there, somebody has removed.
    """
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    if error.errno in _DISK_HINTS:
        what = f"{name or 'output'}: cannot be written: {_reason(error)}"
        return DiskError(what, _DISK_HINTS[error.errno])
    if error.errno in _PATH_HINTS and name:
        return UserError(f"{name}: {_reason(error)}", _PATH_HINTS[error.errno])
    if error.errno == errno.ENOENT:
        return _gone(name, folder)
    return None


def _gone(name: str, folder: Path | None) -> TilefarmError | None:
    if not name and not _has_current_folder():
        return UserError("the current folder has been removed", "`cd` to another one")
    if folder is not None and Path(name).is_relative_to(folder):
        return OutputError(
            f"{name}: has been removed while this ran", "give the same command again"
        )
    return None


def _has_current_folder() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
