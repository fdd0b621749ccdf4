"""Tests that allocate exactly are skipped where the compiled allocator is missing."""

from __future__ import annotations

from tilefarm.errors import InfraError

from driver.memory.native.library import find_library


def no_allocator() -> str:
    """Why nothing can be allocated; empty where the allocator is built."""
    try:
        find_library()
    except InfraError as error:
        return error.what
    return ""
