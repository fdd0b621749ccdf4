"""The allocator's part of the C header in Python's words."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Final

from driver.memory.native.library import INTEGERS, STOP, integers, library, require_memory

NOWHERE: Final = -1


class Status(IntEnum):
    """`tilefarm_memory_status`."""

    FOUND = 0
    INFEASIBLE = 1
    NOT_FOUND = 2


class Rows(ctypes.Structure):
    """`tilefarm_memory_problem`."""

    _fields_ = (
        ("buffers", ctypes.c_int64),
        ("nbytes", INTEGERS),
        ("alignment", INTEGERS),
        ("fixed_offset", INTEGERS),
        ("first_lifetime", INTEGERS),
        ("lower", INTEGERS),
        ("upper", INTEGERS),
        ("reserved", ctypes.c_int64),
        ("reserved_begin", INTEGERS),
        ("reserved_end", INTEGERS),
    )


class Limits(ctypes.Structure):
    """`tilefarm_memory_limits`."""

    _fields_ = (
        ("capacity_nbytes", ctypes.c_int64),
        ("smallest", ctypes.c_int32),
        ("seed", ctypes.c_uint64),
        ("nodes", ctypes.c_uint64),
        ("seconds", ctypes.c_double),
        ("stop", STOP),
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


def search(rows: Rows, limits: Limits, buffers: int) -> tuple[Result, list[int]]:
    """One call of the library, and the offsets where it found some. Other threads run meanwhile.

    Raises:
        InfraError: the library is not built.
        MemoryError: there is not enough for the search.
    """
    offsets = integers([NOWHERE] * buffers)
    result = Result()
    failed = library().tilefarm_memory_allocate(
        ctypes.byref(rows), ctypes.byref(limits), offsets, ctypes.byref(result)
    )
    require_memory(failed)
    return result, list(offsets)
