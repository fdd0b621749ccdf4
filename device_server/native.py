"""The one door to the VTA library: where it lies, and its C functions with Python types."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tilefarm.errors import InfraError, TargetError, TilefarmError
from tilefarm.measurement import Counters, TimelineEvent
from tilefarm.target import Target

import device_server

LIBRARY_NAME: Final = "libtilefarm_vta.so"
EXECUTABLE_NAME: Final = "vta-runner"
BUILD_COMMAND: Final = (
    "cmake -S device_server/runtime -B build/runtime-dev && cmake --build build/runtime-dev"
)

_OK: Final = 0
_BAD_CONFIG: Final = 1
_WHY_NBYTES: Final = 1024
_MODULES: Final = ("load", "compute", "store")
_CONFIG_FIELDS: Final = (
    "log_batch",
    "log_block",
    "log_inp_width",
    "log_wgt_width",
    "log_acc_width",
    "log_uop_buff_size",
    "log_inp_buff_size",
    "log_wgt_buff_size",
    "log_acc_buff_size",
)
_TIMING_FIELDS: Final = (
    "bus_nbytes",
    "log_burst_beats",
    "dram_delay_cycles",
    "queue_entries",
    "outstanding_bursts",
)
_COUNTER_FIELDS: Final = (
    "cycles",
    "instructions",
    "gemm_uops",
    "alu_uops",
    "load_busy_cycles",
    "compute_busy_cycles",
    "store_busy_cycles",
    "inp_load_nbytes",
    "wgt_load_nbytes",
    "acc_load_nbytes",
    "uop_load_nbytes",
    "out_store_nbytes",
)


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
        (name, ctypes.c_int32) for name in (*_CONFIG_FIELDS, *_TIMING_FIELDS, "functional_only")
    ]


class _Counters(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in _COUNTER_FIELDS]


class _Event(ctypes.Structure):
    _fields_ = [
        ("begin_cycle", ctypes.c_uint64),
        ("end_cycle", ctypes.c_uint64),
        ("module", ctypes.c_uint32),
        ("instruction", ctypes.c_uint32),
        ("name", ctypes.c_char * 48),
    ]


def find_library() -> Path:
    """The newest built VTA library.

    Raises:
        InfraError: there is none; says where it was looked for and how to build it.
    """
    return _find(LIBRARY_NAME)


def find_executable() -> Path:
    """The newest built runner; raises as `find_library` does."""
    return _find(EXECUTABLE_NAME)


def hardware_words(target: Target, *, functional_only: bool = False) -> tuple[int, ...]:
    """The integers of `tilefarm_vta_config`, in the order of its fields."""
    geometry = (getattr(target.vta, name) for name in _CONFIG_FIELDS)
    timing = (getattr(target.timing, name) for name in _TIMING_FIELDS)
    return (*geometry, *timing, int(functional_only))


def counters_from_words(words: Iterable[int]) -> Counters:
    """The integers of `tilefarm_vta_counters`, in the order of its fields, as a record."""
    return Counters(**dict(zip(_COUNTER_FIELDS, words, strict=True)))


def timeline_event(module: int, name: str, begin_cycle: int, end_cycle: int) -> TimelineEvent:
    """One event of the library's timeline as a record."""
    return TimelineEvent(
        module=_MODULES[module], name=name, begin_cycle=begin_cycle, end_cycle=end_cycle
    )


def _find(name: str) -> Path:
    candidates = [path for folder in _folders() for path in folder.glob(name) if path.is_file()]
    if candidates:
        return max(candidates, key=lambda path: path.stat().st_mtime_ns)
    places = ", ".join(str(folder) for folder in _places())
    raise InfraError(f"{name} is not built; looked in {places}", BUILD_COMMAND)


def _places() -> list[Path]:
    """Where an installation or a build tree keeps the library; patterns with `*` included."""
    packages = [Path(entry) for entry in device_server.__path__]
    return [package / "lib" for package in packages] + [
        package.parent / "build" / "*" for package in packages
    ]


def _folders() -> list[Path]:
    """The places that exist. Builds with sanitizers do not count: Python cannot load them."""
    return [
        folder
        for place in _places()
        for folder in place.parent.glob(place.name)
        if folder.is_dir() and "sanitize" not in folder.name
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
        record = counters_from_words(getattr(counters, name) for name in _COUNTER_FIELDS)
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
