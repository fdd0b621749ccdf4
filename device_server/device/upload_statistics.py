"""Which of the blobs that a run needs were sent for it, and which were there already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tilefarm.digest import Digest

MOST_FRESH: Final = 4096
"""Blobs; a client sends few ahead of the runs that use them."""


class UploadStatistics:
    """Blobs that were sent and that no run has used yet; of those that none ever does, some."""

    def __init__(self) -> None:
        self._fresh: dict[Digest, None] = {}

    def note(self, digests: Iterable[Digest]) -> None:
        """These have been sent."""
        self._fresh.update(dict.fromkeys(digests))
        while len(self._fresh) > MOST_FRESH:
            del self._fresh[next(iter(self._fresh))]

    def used(self, needed: Iterable[Digest]) -> tuple[int, int]:
        """A run needs these: how many of them were found, and how many were sent."""
        blobs = set(needed)
        sent = blobs & self._fresh.keys()
        for digest in sent:
            del self._fresh[digest]
        return len(blobs) - len(sent), len(sent)
