"""A file whose contents are read again when it changes: servers go on with it without a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from tilefarm.errors import SettingsError

_T = TypeVar("_T")


class HotReload(Generic[_T]):
    """The contents of a file as of now.

    Args:
        path: the file.
        read: makes the contents of it.
        unusable: the error of a file that is not there, from its path and the reason.

    Raises:
        SettingsError: as `read` or `unusable` say.
    """

    def __init__(
        self,
        path: Path,
        read: Callable[[Path], _T],
        unusable: Callable[[Path, str], SettingsError],
    ) -> None:
        self._path = path
        self._read = read
        self._unusable = unusable
        self._seen = self._look()
        self._contents = read(path)

    def contents(self) -> _T:
        """What the file holds now.

        Raises:
            SettingsError: it cannot be used any more.
        """
        seen = self._look()
        if seen != self._seen:
            self._contents = self._read(self._path)
            self._seen = seen
        return self._contents

    def _look(self) -> tuple[int, int, int]:
        try:
            status = self._path.stat()
        except OSError as error:
            raise self._unusable(self._path, str(error.strerror)) from None
        return status.st_ino, status.st_mtime_ns, status.st_size
