"""The memory in which the buffers of one child and of its accelerator lie."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SEALS: Final = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
"""Its length stays what it is: one process cannot take memory away under the other."""


@contextmanager
def arena(nbytes: int) -> Iterator[int]:
    """A file in memory of that length; whoever it is sent to has it for longer."""
    descriptor = os.memfd_create("vta-runner-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, nbytes)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        yield descriptor
    finally:
        os.close(descriptor)
