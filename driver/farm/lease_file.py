"""The leases that a run holds, in a file: whoever starts it again gives back what it held.

A run that was killed cannot give its devices back, and nobody gets them before their leases run
out. The one that goes on from its folder knows that it is dead: it has the folder's lock. What is
kept is how a lease was asked for, from before that: a tracker that is asked again tells the same
lease, also if the run was killed before it heard of it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path

from tilefarm.documents import read_json
from tilefarm.errors import OutputError

from driver.atomic_write import write_atomically


class HeldLeases:
    """Ids of requests for leases in a file of one run; of no file when `path` is None.

    What cannot be read or written costs time later, and nothing else.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def left(self) -> tuple[str, ...]:
        """The requests for what an earlier run may have held when it ended."""
        if self._path is None:
            return ()
        try:
            found = read_json(self._path)
        except (OSError, ValueError):
            return ()
        return tuple(map(str, found)) if isinstance(found, list) else ()

    def keep(self, request_ids: Iterable[str]) -> None:
        """What these ask for is held, or may be at any moment."""
        if self._path is not None:
            with contextlib.suppress(OutputError):
                write_atomically(self._path, json.dumps(sorted(request_ids)).encode(), mode=0o600)
