"""What a device server remembers over its restarts: plain JSON in a small file of its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tilefarm.documents import read_json
from tilefarm.watch.log import Level, Log


class KeptFile:
    """One that cannot be read or written costs the memory, not the service: the log says so.

    Args:
        path: its alone.
        device: the name to put into the log; event: what the log calls a failure.
    """

    def __init__(self, path: Path, log: Log, *, device: str, event: str) -> None:
        self._path = path
        self._log = log
        self._device = device
        self._event = event

    def read(self) -> tuple[Any, float] | None:
        """What was written last and when, in wall seconds; None if there is nothing to read."""
        try:
            return read_json(self._path), self._path.stat().st_mtime
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.fails(error)
            return None

    def write(self, content: object) -> None:
        """Keep it in place of what is there; a reader finds one or the other."""
        fresh = self._path.with_suffix(".fresh")
        try:
            fresh.write_text(json.dumps(content))
            fresh.replace(self._path)
        except OSError as error:
            self.fails(error)

    def fails(self, error: Exception) -> None:
        """Say that it is of no use."""
        self._log(
            self._event,
            level=Level.WARNING,
            device=self._device,
            file=str(self._path),
            why=str(error),
        )
