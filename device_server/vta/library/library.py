"""The VTA library in this process: the one door through ctypes, for streams and compiled kernels.

There is one accelerator per loaded library. Nothing here isolates: a kernel that crashes takes this
process along, and one that loops for ever never returns; `device_server.runner` is for those.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tilefarm.errors import DataError, InfraError, TargetError, TilefarmError
from tilefarm.machine import VTA_COUNTERS
from tilefarm.measurement import Counters
from tilefarm.target import Target

from device_server.vta.library import structures
from device_server.vta.library.native import (
    BUILD_COMMAND,
    TIMING_BASES,
    Strictness,
    TimingBasis,
    TimingModel,
    counters_from_words,
    find_library,
    hardware_words,
    timeline_event,
)
from device_server.vta.library.session import EntrySession
from device_server.vta.library.stream_results import (
    EntryResult,
    HardwareFinding,
    RecordedStream,
    StreamResult,
)

__all__ = [
    "EntryResult",
    "HardwareFinding",
    "RecordedStream",
    "StreamResult",
    "Strictness",
    "TimingBasis",
    "TimingModel",
    "VtaError",
    "VtaLibrary",
]

_OK: Final = 0
_BAD_CONFIG: Final = 1
_BAD_ARGUMENT: Final = 2
_UNSUPPORTED: Final = 12
_TO_DEVICE: Final = 1
_FROM_DEVICE: Final = 2
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
        self._c.tilefarm_vta_vector_paths.restype = ctypes.c_char_p
        for name in ("read_timeline", "read_findings", "recorded_streams"):
            getattr(self._c, f"tilefarm_vta_{name}").restype = ctypes.c_size_t
        self._c.VTABufferAlloc.restype = ctypes.c_void_p

    def configure(
        self,
        target: Target,
        *,
        functional_only: bool = False,
        strictness: Strictness | None = None,
        model: TimingModel | None = None,
    ) -> None:
        """Start over as that accelerator; buffers and recordings of the one before are gone.

        Whose rules and time hold where nothing is said, the target's design decides.

        Raises:
            TargetError: no hardware can have these parameters.
        """
        words = hardware_words(
            target, functional_only=functional_only, strictness=strictness, model=model
        )
        status = self._c.tilefarm_vta_configure(ctypes.byref(structures.RawConfig(*words)))
        if status == _BAD_CONFIG:
            raise TargetError(
                f"{target.name}: {self._why()}", "`tilefarm targets --show sim` prints one that is"
            )
        self._check(status)

    def vector_paths(self) -> tuple[str, ...]:
        """Implementations of the matrix unit that this machine can run, the fastest first.

        "scalar", one product at a time, is what the others are measured against.
        """
        return tuple(self._c.tilefarm_vta_vector_paths().decode().split())

    def use_vector_path(self, name: str) -> None:
        """Compute with that implementation from now on; the accelerator is reset.

        Raises:
            DataError: this machine has no such path.
        """
        status = self._c.tilefarm_vta_use_vector_path(name.encode())
        if status == _BAD_ARGUMENT:
            known = ", ".join(self.vector_paths())
            raise DataError(f"{name!r} is no vector path of this machine", f"one of {known}")
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
        counters = structures.RawCounters()
        self._c.tilefarm_vta_record_timeline(int(timeline))
        status = self._c.tilefarm_vta_run_stream(
            words.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(len(words)),
            image.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(image.size),
            ctypes.byref(counters),
        )
        self._c.tilefarm_vta_record_timeline(0)
        if status != _UNSUPPORTED:
            self._check(status)
        result = StreamResult(
            counters=_record(counters), dram=image, findings=self._findings(), basis=self._basis()
        )
        return self._with_timeline(result, len(words)) if timeline else result

    def run_entry(self, artifact: Path, entry: str, buffers: Sequence[bytes | int]) -> EntryResult:
        """Call an entry of a compiled object in this process, from a reset accelerator.

        Args:
            artifact: the shared object; it stays loaded.
            buffers: contents of every parameter, or the size in bytes of a zeroed one.

        Raises:
            DataError: the object cannot be loaded, lacks the entry, or the entry returns an error.
            VtaError: the runtime refused what the kernel asked for, or there are errors among the
                findings.
        """
        function = _entry_of(artifact, entry)
        self._c.tilefarm_vta_reset()
        self._c.tilefarm_vta_clear_counters()
        with self._filled(buffers) as handles:
            offsets = (ctypes.c_int64 * len(handles))()
            returned = function((ctypes.c_void_p * len(handles))(*handles), offsets)
            self._check(self._c.tilefarm_vta_check_idle())
            if returned != 0:
                raise DataError(f"{entry} of {artifact} returned {returned}", "compile it again")
            contents = tuple(
                self._content(handle, content)
                for handle, content in zip(handles, buffers, strict=True)
            )
        counters = structures.RawCounters()
        self._c.tilefarm_vta_read_counters(ctypes.byref(counters))
        return EntryResult(buffers=contents, counters=_record(counters))

    @contextmanager
    def session(self, artifact: Path, buffers: Sequence[bytes | int]) -> Iterator[EntrySession]:
        """Entries of a compiled object on buffers that stay, from a reset accelerator.

        Args:
            artifact: the shared object; it stays loaded.
            buffers: contents of every parameter, or the size in bytes of a zeroed one.

        Raises:
            VtaError: there is no room for the buffers.
        """
        self._c.tilefarm_vta_reset()
        with self._filled(buffers) as handles:
            yield EntrySession(
                self._c,
                lambda name: _entry_of(artifact, name),
                handles,
                lambda: self._check(self._c.tilefarm_vta_check_idle()),
                lambda source, to, nbytes, is_input: self._copy(
                    source, to, nbytes, _TO_DEVICE if is_input else _FROM_DEVICE
                ),
            )

    def record(self, on: bool) -> None:
        """Keep every synchronization from now on, or no more; switching on forgets older ones."""
        self._c.tilefarm_vta_record_streams(int(on))

    def recorded(self) -> tuple[RecordedStream, ...]:
        """The synchronizations kept since `record(True)`, in order."""
        count = self._c.tilefarm_vta_recorded_streams()
        return tuple(self._recorded(stream) for stream in range(count))

    def _recorded(self, stream: int) -> RecordedStream:
        about = structures.RawRecorded()
        index = ctypes.c_size_t(stream)
        self._check(self._c.tilefarm_vta_describe_recorded(index, ctypes.byref(about)))
        instructions = np.zeros((about.instructions, 2), np.uint64)
        before = np.zeros(about.image_nbytes, np.uint8)
        after = np.zeros(about.image_nbytes, np.uint8)
        places = (a.ctypes.data_as(ctypes.c_void_p) for a in (instructions, before, after))
        self._check(self._c.tilefarm_vta_read_recorded(index, *places))
        return RecordedStream(
            instructions=instructions, before=before, after=after, counters=_record(about.counters)
        )

    @contextmanager
    def _filled(self, buffers: Sequence[bytes | int]) -> Iterator[list[int]]:
        """Handles of data buffers with these contents, freed in the end."""
        handles: list[int] = []
        try:
            for content in buffers:
                nbytes = content if isinstance(content, int) else len(content)
                handle = self._c.VTABufferAlloc(ctypes.c_size_t(nbytes))
                if handle is None:
                    raise VtaError(self._why(), self._status())
                handles.append(handle)
                if isinstance(content, bytes):
                    self._copy(content, handle, nbytes, _TO_DEVICE)
            yield handles
        finally:
            for handle in handles:
                self._c.VTABufferFree(ctypes.c_void_p(handle))

    def _content(self, handle: int, content: bytes | int) -> bytes:
        nbytes = content if isinstance(content, int) else len(content)
        to = ctypes.create_string_buffer(max(1, nbytes))
        self._copy(ctypes.c_void_p(handle), to, nbytes, _FROM_DEVICE)
        return to.raw[:nbytes]

    def _copy(self, source: Any, destination: Any, nbytes: int, mask: int) -> None:
        to = ctypes.c_void_p(destination) if isinstance(destination, int) else destination
        zero, count = ctypes.c_size_t(0), ctypes.c_size_t(nbytes)
        self._c.VTABufferCopy(source, zero, to, zero, count, mask)

    def _with_timeline(self, result: StreamResult, count: int) -> StreamResult:
        events = self._events()
        spans = np.zeros((count, 2), np.int64)
        for event in events:
            spans[event.instruction] = event.begin_cycle, event.end_cycle
        records = tuple(
            timeline_event(e.module, e.name.decode(), e.begin_cycle, e.end_cycle) for e in events
        )
        return StreamResult(
            counters=result.counters,
            dram=result.dram,
            timeline=records,
            spans=spans,
            findings=result.findings,
            basis=result.basis,
        )

    def _events(self) -> list[structures.RawEvent]:
        count = self._c.tilefarm_vta_read_timeline(None, ctypes.c_size_t(0))
        events = (structures.RawEvent * count)()
        self._c.tilefarm_vta_read_timeline(events, ctypes.c_size_t(count))
        return list(events)

    def _findings(self) -> tuple[HardwareFinding, ...]:
        count = self._c.tilefarm_vta_read_findings(None, ctypes.c_size_t(0))
        findings = (structures.RawFinding * count)()
        self._c.tilefarm_vta_read_findings(findings, ctypes.c_size_t(count))
        return tuple(
            HardwareFinding(
                "error" if f.severity > 1 else "warning",
                f.rule.decode(),
                f.instruction,
                f.text.decode(),
            )
            for f in findings
        )

    def _basis(self) -> TimingBasis:
        return TIMING_BASES[int(self._c.tilefarm_vta_timing_basis())]

    def _why(self) -> str:
        text = ctypes.create_string_buffer(_WHY_NBYTES)
        self._c.tilefarm_vta_last_error(text, ctypes.c_size_t(_WHY_NBYTES))
        return text.value.decode(errors="replace")

    def _status(self) -> int:
        return int(self._c.tilefarm_vta_last_error(None, ctypes.c_size_t(0)))

    def _check(self, status: int) -> None:
        if status != _OK:
            raise VtaError(self._why(), status)


def _record(counters: structures.RawCounters) -> Counters:
    return counters_from_words(getattr(counters, name) for name in VTA_COUNTERS)


def _entry_of(artifact: Path, entry: str) -> Any:
    try:
        function = ctypes.CDLL(str(artifact.resolve()))[entry]
    except OSError as error:
        raise DataError(f"cannot load {artifact}: {error}", "compile it for this host") from None
    except AttributeError:
        raise DataError(f"{artifact} has no entry {entry}", "compile it again") from None
    function.restype = ctypes.c_int32
    return function
