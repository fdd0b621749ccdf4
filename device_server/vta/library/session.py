"""Entries of one object, called in any order on buffers that stay: what each of them took."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from tilefarm.errors import DataError

from device_server.vta.library import structures

_EMPTY_CALLS: Final = 2000


@dataclass(frozen=True, slots=True)
class TimedCall:
    """What the accelerator counted during a call, and seconds of the host's clock around it."""

    cycles: int
    seconds: float


class EntrySession:
    """Made by `VtaLibrary.session`.

    A call through ctypes takes some microseconds: those of an empty one are taken off its seconds.
    """

    def __init__(
        self,
        library: Any,
        entry_of: Callable[[str], Any],
        handles: Sequence[int],
        check_idle: Callable[[], None],
        copy: Callable[[Any, Any, int, bool], None],
    ) -> None:
        self._c = library
        self._entry_of = entry_of
        self._check_idle = check_idle
        self._copy = copy
        self._buffers = tuple(handles)
        self._handles = (ctypes.c_void_p * len(handles))(*handles)
        self._offsets = (ctypes.c_int64 * len(handles))()
        self._entries: dict[str, Any] = {}
        self._empty_seconds = self._seconds_of_an_empty_call()

    def call(self, name: str) -> TimedCall:
        """Call an entry.

        Raises:
            DataError: there is none of that name, or it returns an error.
            VtaError: the runtime refused what it asked for.
        """
        if name not in self._entries:
            self._entries[name] = self._entry_of(name)
        entry = self._entries[name]
        self._c.tilefarm_vta_clear_counters()
        begin = time.perf_counter_ns()
        returned = entry(self._handles, self._offsets)
        seconds = 1e-9 * (time.perf_counter_ns() - begin) - self._empty_seconds
        self._check_idle()
        if returned != 0:
            raise DataError(f"{name} returned {returned}", "compile it again")
        counters = structures.RawCounters()
        self._c.tilefarm_vta_read_counters(ctypes.byref(counters))
        return TimedCall(cycles=counters.cycles, seconds=max(seconds, 0.0))

    def write(self, buffer: int, content: bytes) -> None:
        """Fill a buffer, by its number."""
        self._copy(content, self._buffers[buffer], len(content), True)

    def read(self, buffer: int, nbytes: int) -> bytes:
        """The first bytes of a buffer, by its number."""
        to = ctypes.create_string_buffer(max(1, nbytes))
        self._copy(ctypes.c_void_p(self._buffers[buffer]), to, nbytes, False)
        return to.raw[:nbytes]

    def _seconds_of_an_empty_call(self) -> float:
        """A function of the library that reads one word, called as entries are."""
        empty = self._c.tilefarm_vta_timing_basis
        took = []
        for _ in range(_EMPTY_CALLS):
            begin = time.perf_counter_ns()
            empty(self._handles, self._offsets)
            took.append(1e-9 * (time.perf_counter_ns() - begin))
        return median(took)
