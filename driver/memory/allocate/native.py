"""The built allocator in this process: where it lies, and its C header in Python's words."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from tilefarm.errors import InfraError

import driver

LIBRARY_NAME: Final = "libtilefarm_memory.so"
BUILD_COMMAND: Final = "make setup"
NOWHERE: Final = -1

_INTEGERS: Final = ctypes.POINTER(ctypes.c_int64)


class Status(IntEnum):
    """`tilefarm_memory_status`."""

    FOUND = 0
    INFEASIBLE = 1
    NOT_FOUND = 2


class Rows(ctypes.Structure):
    """`tilefarm_memory_problem`."""

    _fields_ = (
        ("buffers", ctypes.c_int64),
        ("nbytes", _INTEGERS),
        ("alignment", _INTEGERS),
        ("fixed_offset", _INTEGERS),
        ("first_lifetime", _INTEGERS),
        ("lower", _INTEGERS),
        ("upper", _INTEGERS),
        ("reserved", ctypes.c_int64),
        ("reserved_begin", _INTEGERS),
        ("reserved_end", _INTEGERS),
    )


class Limits(ctypes.Structure):
    """`tilefarm_memory_limits`."""

    _fields_ = (
        ("capacity_nbytes", ctypes.c_int64),
        ("smallest", ctypes.c_int32),
        ("seed", ctypes.c_uint64),
        ("nodes", ctypes.c_uint64),
        ("seconds", ctypes.c_double),
        ("stop", ctypes.POINTER(ctypes.c_int32)),
    )


class Result(ctypes.Structure):
    """`tilefarm_memory_result`."""

    _fields_ = (
        ("status", ctypes.c_int32),
        ("is_optimal", ctypes.c_int32),
        ("peak_nbytes", ctypes.c_int64),
        ("bound_nbytes", ctypes.c_int64),
        ("nodes", ctypes.c_uint64),
    )


def integers(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """An array of 64-bit integers."""
    return (ctypes.c_int64 * len(values))(*values)


def search(rows: Rows, limits: Limits, buffers: int) -> tuple[Result, list[int]]:
    """One call of the library, and the offsets where it found some. Other threads run meanwhile.

    Raises:
        InfraError: the library is not built.
        MemoryError: there is not enough for the search.
    """
    offsets = integers([NOWHERE] * buffers)
    result = Result()
    library = _library(find_library())
    failed = library.tilefarm_memory_allocate(
        ctypes.byref(rows), ctypes.byref(limits), offsets, ctypes.byref(result)
    )
    if failed:
        raise MemoryError("the search for offsets needs more memory than there is")
    return result, list(offsets)


@cache
def find_library() -> Path:
    """The newest built library.

    Raises:
        InfraError: there is none; says where it was looked for and how to build it.
    """
    packages = [Path(entry) for entry in driver.__path__]
    folders = [package / "lib" for package in packages]
    folders += [
        build
        for package in packages
        for build in (package.parent / "build").glob("*")
        if "sanitize" not in build.name  # Python cannot load them
    ]
    found = [folder / LIBRARY_NAME for folder in folders if (folder / LIBRARY_NAME).is_file()]
    if not found:
        places = ", ".join(str(folder) for folder in folders)
        raise InfraError(f"{LIBRARY_NAME} is not built; looked in {places}", BUILD_COMMAND)
    return max(found, key=lambda path: path.stat().st_mtime_ns)


@cache
def _library(path: Path) -> Any:
    return ctypes.CDLL(str(path))
