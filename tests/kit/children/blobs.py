"""Blobs where no store is: contents by digest, as files in a folder."""

from __future__ import annotations

from pathlib import Path

from tilefarm.digest import Digest


class Blobs:
    """Contents by digest, as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, content: bytes) -> Digest:
        digest = Digest.of(content)
        (self._folder / digest.hex).write_bytes(content)
        return digest

    def path(self, digest: Digest) -> Path:
        return self._folder / digest.hex
