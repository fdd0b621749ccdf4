"""What was freed goes back to the system between steps.

glibc keeps it for the next allocation. After the weights of a large network were quantized that is
as much as the network itself, and no later step needs as much at once.
"""

from __future__ import annotations

import ctypes


def return_freed_memory() -> None:
    """Give freed pages back where the C library can (`malloc_trim` of glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))
