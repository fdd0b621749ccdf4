"""What a process writes to its standard error: a file in memory, of which the end is told."""

from __future__ import annotations

import os
from typing import Final

from tilefarm.closing import Closing

LONGEST_TAIL_NBYTES: Final = 400


class LastWords(Closing):
    """A file for one process; how much it may write is a limit of the process."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("vta-runner-stderr", os.MFD_CLOEXEC)

    def text(self) -> str:
        """The end of what is there."""
        length = os.lseek(self.descriptor, 0, os.SEEK_END)
        tail = os.pread(self.descriptor, LONGEST_TAIL_NBYTES, max(0, length - LONGEST_TAIL_NBYTES))
        return tail.decode(errors="replace").strip()

    def close(self) -> None:
        """Forget it. May be called again."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1
