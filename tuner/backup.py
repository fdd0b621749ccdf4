"""A second copy of the records, for the day on which the first one turns out to be damaged.

Beside the file lie a whole copy of it, as it was when it was last opened for writing, and a line of
JSON for every change since. Both together are the records again.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tilefarm.closing import Closing

from tuner.database import Database, copied


class Backup(Closing):
    """The second copy of one file. A disk that has no room for it costs the copy, not the run.

    Args:
        path: of the records themselves.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._copy = path.with_name(path.name + ".copy")
        self._since = path.with_name(path.name + ".since")
        self.damaged = path.with_name(path.name + ".damaged")
        self._lines: IO[str] | None = None

    def close(self) -> None:
        if self._lines is not None:
            with contextlib.suppress(OSError):
                self._lines.close()

    @property
    def exists(self) -> bool:
        """Whether there is a copy to go back to."""
        return self._copy.exists()

    def begin(self, db: Database) -> None:
        """The records are sound: this is what they are, and changes are noted from here on."""
        fresh = self._copy.with_suffix(".fresh")
        try:
            # A moment without lines is harmless: the file itself is sound just now.
            lines = self._since.open("w", encoding="utf-8", buffering=1)
            fresh.unlink(missing_ok=True)
            copied(db, fresh)
            fresh.replace(self._copy)
            self._lines = lines
        except OSError:
            self.forget()

    def note(self, what: str, *values: object) -> None:
        """A change that is in the file by now."""
        if self._lines is None:
            return
        try:
            self._lines.write(json.dumps([what, *values]) + "\n")
        except OSError:
            self.forget()

    def forget(self) -> None:
        """There is no copy any more: a part of one would pass for the whole."""
        self.close()
        self._lines = None
        for file in (self._copy, self._since):
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)

    def put_back(self) -> None:
        """The copy takes the file's place, which is kept as `damaged`."""
        self._path.replace(self.damaged)
        for beside in ("-wal", "-shm"):
            self._path.with_name(self._path.name + beside).unlink(missing_ok=True)
        shutil.copyfile(self._copy, self._path)

    def changes(self) -> Iterator[tuple[str, list[Any]]]:
        """What was noted since, in order; a line that was cut off by a kill is the last one."""
        with contextlib.suppress(OSError, ValueError):
            for line in self._since.read_text(encoding="utf-8").splitlines():
                what, *values = json.loads(line)
                yield str(what), values
