"""A file in memory whose content nobody can change: for what is used once and soon forgotten."""

from __future__ import annotations

import fcntl
import mmap
import os
from pathlib import Path
from typing import Final

from tilefarm.closing import Closing

_SEALS: Final = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


class MemoryFile(Closing):
    """Bytes under a path of this process, gone when it is closed. Takes one descriptor.

    Raises:
        OSError: there is no room, or no descriptor left.
    """

    def __init__(self, content: bytes) -> None:
        flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
        self._descriptor = os.memfd_create("blob", flags)
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(self._descriptor, left) :]
            fcntl.fcntl(self._descriptor, fcntl.F_ADD_SEALS, _SEALS)
        except OSError:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """Where this process, and no other, may open it."""
        return Path(f"/proc/self/fd/{self._descriptor}")

    def close(self) -> None:
        """Forget it. May be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def code_may_lie_in_memory() -> bool:
    """Whether code in such a file may be executed here; a hardened kernel may forbid it."""
    try:
        with (
            MemoryFile(b"\0" * mmap.PAGESIZE) as file,
            file.path.open("rb") as opened,
            mmap.mmap(
                opened.fileno(),
                mmap.PAGESIZE,
                flags=mmap.MAP_PRIVATE,
                prot=mmap.PROT_READ | mmap.PROT_EXEC,
            ),
        ):
            return True
    except OSError:
        return False
