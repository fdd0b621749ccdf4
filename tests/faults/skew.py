"""The wall clock of server processes, off by as much as a test likes."""

from __future__ import annotations

from pathlib import Path


class Skew:
    """The wall clock of the servers that are started with its environment."""

    def __init__(self, file: Path, seconds: int = 0) -> None:
        self._file = file
        self.jump(seconds)
        folder = str(Path(__file__).with_name("clock_of_a_process"))
        self.environment = {"PYTHONPATH": folder, "SKEW_FILE": str(file)}

    def jump(self, seconds: int) -> None:
        """So far from ours it is from now on."""
        fresh = self._file.with_suffix(".fresh")
        fresh.write_text(str(seconds))
        fresh.replace(self._file)
