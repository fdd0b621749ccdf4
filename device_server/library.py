"""The VTA library in this process: the one door through ctypes, for raw instruction streams."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tilefarm.errors import InfraError, TargetError, TilefarmError
from tilefarm.measurement import Counters, TimelineEvent
from tilefarm.target import Target

from device_server.native import (
    BUILD_COMMAND,
    CONFIG_FIELDS,
    COUNTER_FIELDS,
    TIMING_FIELDS,
    counters_from_words,
    find_library,
    hardware_words,
    timeline_event,
)

_OK: Final = 0
_BAD_CONFIG: Final = 1
_WHY_NBYTES: Final = 1024


class VtaError(TilefarmError):
    """The library refused a call; `status` is its number in `tilefarm_vta.h`."""

    def __init__(self, what: str, status: int) -> None:
        Exception.__init__(self, what, status)

    @property
    def hint(self) -> str:
        return ""

    @property
    def status(self) -> int:
        return int(self.args[1])


class _Config(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int32) for name in (*CONFIG_FIELDS, *TIMING_FIELDS, "functional_only")
    ]


class _Counters(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in COUNTER_FIELDS]


class _Event(ctypes.Structure):
    _fields_ = [
        ("begin_cycle", ctypes.c_uint64),
        ("end_cycle", ctypes.c_uint64),
        ("module", ctypes.c_uint32),
        ("instruction", ctypes.c_uint32),
        ("name", ctypes.c_char * 48),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResult:
    """A raw run: counters, memory afterwards (uint8), and the instruction timeline if asked for.

    `spans` is int64[n, 2]: first cycle of every instruction in its module, first cycle after it.
    """

    counters: Counters
    dram: npt.NDArray[np.uint8]
    timeline: tuple[TimelineEvent, ...] = ()
    spans: npt.NDArray[np.int64] | None = None


class VtaLibrary:
    """The library in this process. There is one accelerator per loaded library; not thread safe.

    Args:
        path: the shared object; `find_library()` when None.

    Raises:
        InfraError: the library is missing or cannot be loaded.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or find_library()
        try:
            self._c: Any = ctypes.CDLL(str(self.path), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise InfraError(f"cannot load {self.path}: {error}", BUILD_COMMAND) from None
        self._c.tilefarm_vta_build_id.restype = ctypes.c_char_p
        self._c.tilefarm_vta_read_timeline.restype = ctypes.c_size_t

    @property
    def build_id(self) -> str:
        """Version, compiler and vector path."""
        return str(self._c.tilefarm_vta_build_id().decode())

    def configure(self, target: Target, *, functional_only: bool = False) -> None:
        """Start over as that accelerator; buffers of the one before are gone.

        Raises:
            TargetError: no hardware can have these parameters.
        """
        config = _Config(*hardware_words(target, functional_only=functional_only))
        status = self._c.tilefarm_vta_configure(ctypes.byref(config))
        if status == _BAD_CONFIG:
            raise TargetError(f"{target.name}: {self._why()}")
        self._check(status)

    def run_stream(
        self,
        instructions: npt.NDArray[np.uint64],
        dram: npt.NDArray[np.uint8],
        *,
        timeline: bool = False,
    ) -> StreamResult:
        """Run raw instructions (uint64[n, 2], low word first) on a flat memory image.

        Raises:
            VtaError: an instruction is out of range, malformed, or waits for ever.
        """
        words = np.ascontiguousarray(instructions, dtype=np.uint64)
        image = np.array(dram, dtype=np.uint8)
        counters = _Counters()
        self._c.tilefarm_vta_record_timeline(int(timeline))
        status = self._c.tilefarm_vta_run_stream(
            words.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(len(words)),
            image.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(image.size),
            ctypes.byref(counters),
        )
        self._c.tilefarm_vta_record_timeline(0)
        self._check(status)
        record = counters_from_words(getattr(counters, name) for name in COUNTER_FIELDS)
        if not timeline:
            return StreamResult(counters=record, dram=image)
        events = self._events()
        spans = np.zeros((len(words), 2), np.int64)
        for event in events:
            spans[event.instruction] = event.begin_cycle, event.end_cycle
        records = tuple(
            timeline_event(e.module, e.name.decode(), e.begin_cycle, e.end_cycle) for e in events
        )
        return StreamResult(counters=record, dram=image, timeline=records, spans=spans)

    def _events(self) -> list[_Event]:
        count = self._c.tilefarm_vta_read_timeline(None, ctypes.c_size_t(0))
        events = (_Event * count)()
        self._c.tilefarm_vta_read_timeline(events, ctypes.c_size_t(count))
        return list(events)

    def _why(self) -> str:
        text = ctypes.create_string_buffer(_WHY_NBYTES)
        self._c.tilefarm_vta_last_error(text, ctypes.c_size_t(_WHY_NBYTES))
        return text.value.decode(errors="replace")

    def _check(self, status: int) -> None:
        if status != _OK:
            raise VtaError(self._why(), status)
