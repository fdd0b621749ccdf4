"""The newest lease under which a device was found not to be right; a file keeps its fence.

Whoever held the device hears of it with the next call. Who was killed before, and goes on when
somebody has put the device back into service, learns it from the fence: what was measured under
this one or an earlier one, and was never confirmed, is worth nothing.
"""

from __future__ import annotations

from pathlib import Path

from tilefarm.watch.log import Level, Log


class SpoiledFence:
    """The fence, over restarts of the server. A disk without room costs what a restart forgets.

    Args:
        file: keeps it.
        device: the name to put into the log.
    """

    def __init__(self, file: Path, log: Log, *, device: str) -> None:
        self._file = file
        self._log = log
        self._device = device
        self._fence = self._kept()

    @property
    def fence(self) -> int:
        """The fence; 0 if the device was right under every lease."""
        return self._fence

    def note(self, fence: int) -> None:
        """The device was found not to be right under a lease."""
        if fence <= self._fence:
            return
        self._fence = fence
        fresh = self._file.with_suffix(".fresh")
        try:
            fresh.write_text(f"{fence}\n")
            fresh.replace(self._file)
        except OSError as error:
            self._fails(error)

    def _kept(self) -> int:
        try:
            return int(self._file.read_text())
        except FileNotFoundError:
            return 0
        except (OSError, ValueError) as error:
            self._fails(error)
            return 0

    def _fails(self, error: Exception) -> None:
        self._log(
            "spoiled_fence_not_kept",
            level=Level.WARNING,
            device=self._device,
            file=str(self._file),
            why=str(error),
        )
