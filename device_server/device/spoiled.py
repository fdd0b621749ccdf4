"""The newest lease under which a device was found not to be right; a file keeps its fence.

Whoever holds the device hears of it with the next call. Who was killed before, and goes on when
somebody has put the device back into service, learns it from the fence: what was measured under
this one or an earlier one, and was never confirmed, is worth nothing. Also when it is the self-test
of a server that starts again that finds it out, so the newest lease is kept as well.
"""

from __future__ import annotations

from pathlib import Path

from tilefarm.watch.log import Log

from device_server.device.kept_file import KeptFile


class SpoiledFence:
    """The fence, over restarts of the server. A disk without room costs what a restart forgets.

    Args:
        file: keeps it.
        device: the name to put into the log.
    """

    def __init__(self, file: Path, log: Log, *, device: str) -> None:
        self._file = KeptFile(file, log, device=device, event="spoiled_fence_not_kept")
        self._newest, self._fence = self._kept()

    @property
    def fence(self) -> int:
        """The fence; 0 if the device was right under every lease."""
        return self._fence

    def lease(self, fence: int) -> None:
        """The device is leased anew, with a higher fence than ever."""
        self._newest = fence
        self._keep()

    def spoil(self) -> None:
        """The device is not right."""
        if self._fence != self._newest:
            self._fence = self._newest
            self._keep()

    def _keep(self) -> None:
        self._file.write({"newest": self._newest, "spoiled": self._fence})

    def _kept(self) -> tuple[int, int]:
        kept = self._file.read()
        if kept is None:
            return 0, 0
        try:
            return int(kept[0]["newest"]), int(kept[0]["spoiled"])
        except (ValueError, TypeError, KeyError) as error:
            self._file.fails(error)
            return 0, 0
