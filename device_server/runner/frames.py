"""The frames between the device server and its runner's processes: requests out, replies in.

The other side is `device_server/vta/runtime/runner/frames.h`; all numbers are little endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol

from tilefarm.errors import InfraError
from tilefarm.machine import VTA_COUNTERS
from tilefarm.measurement import (
    BufferSpec,
    CallTime,
    Counters,
    Role,
    RunJob,
    TimelineEvent,
    WallTime,
)
from tilefarm.plural import plural

from device_server.vta.library.native import counters_from_words, timeline_event

_ROLES: Final = {Role.CONSTANT: 0, Role.INPUT: 1, Role.OUTPUT: 2, Role.SCRATCH: 3}
_OUTSIDE: Final = 0xFFFF_FFFF_FFFF_FFFF
MOST_REPLY_NBYTES: Final = 16 << 20
"""Of a child's reply, or of its accelerator's: every sample's cycles, every repeat's seconds, a
profile and a timeline."""

MOST_EVENTS: Final = 1 << 18
"""Of a timeline, one an instruction: the programs of whole networks have some ten thousand."""

LONGEST_TEXT: Final = 1000
"""Characters of what a child says; its reasons stand in replies and log lines."""


class FailureKind(IntEnum):
    """Why the child could not serve a request."""

    LOAD = 1
    RUNTIME = 2
    MEMORY = 3
    UNSTABLE = 4
    PROTOCOL = 5
    UNTIMED = 6


@dataclass(frozen=True, slots=True)
class Ready:
    """The process is up, configured or loaded; what it is."""

    sandbox: str
    build_id: str
    apart: bool
    """Whether a process of its own plays the accelerator, which no kernel can reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneReply:
    """A run that went to its end, as its child tells it. Output bytes lie in the results file.

    Whatever is counted here comes from a library that counts in the child.
    """

    run_seconds: float
    counters: Counters | None
    sample_cycles: tuple[int, ...]
    seconds: tuple[float, ...]
    wall_time: WallTime | None
    profile: tuple[CallTime, ...]
    timeline: tuple[TimelineEvent, ...]


@dataclass(frozen=True, slots=True)
class FailedReply:
    """The child is alive and says why not."""

    kind: FailureKind
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The child's last words before a signal ends it."""

    signal: int
    address: int
    artifact_offset: int | None
    system_call: int | None
    memory_exhausted: bool


@dataclass(frozen=True, slots=True)
class Started:
    """A new process, by its number."""

    pid: int


@dataclass(frozen=True, slots=True)
class Calls:
    """So many calls in a row, of which each was counted the same."""

    calls: int
    each: Counters


@dataclass(frozen=True, slots=True)
class Account:
    """What an accelerator did since it was asked last, in its own words.

    `failed` says why it did not do all that was asked of it, None if it did.
    """

    failed: FailedReply | None
    calls: tuple[Calls, ...]
    timeline: tuple[TimelineEvent, ...]


Reply = Ready | DoneReply | FailedReply | Fault | Started | Account


class ByteStream(Protocol):
    """Gives exactly `count` bytes; raises what its transport raises."""

    def take(self, count: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Request:
    """A frame, and the descriptors that go beside it."""

    frame: bytes
    descriptors: tuple[int, ...] = ()


def configure_request(words: Sequence[int]) -> Request:
    """Become that accelerator: the integers of `tilefarm_vta_config`."""
    return Request(_framed(struct.pack(f"<B{len(words)}i", 1, *words)))


def load_request(artifact: int) -> Request:
    """Load the artifact in this file; at most once in a child's life."""
    return Request(_framed(b"\x02"), (artifact,))


def run_request(job: RunJob, contents: Sequence[int], results: int) -> Request:
    """Run the job.

    Args:
        contents: one file for each buffer with content.
        results: a file for the outputs, large enough.
    """
    wanted = job.precision
    precision = (wanted.error, wanted.seconds) if wanted else (0.0, 0.0)
    parts = [
        b"\x03",
        _text(job.entry),
        struct.pack("<IIB2d", job.samples, job.repeats, job.timeline, *precision),
        struct.pack("<I", len(job.profile)),
        *map(_text, job.profile),
        struct.pack("<I", len(job.buffers)),
        *map(_buffer, job.buffers),
    ]
    return Request(_framed(b"".join(parts)), (*contents, results))


def spawn_request(theirs: int, log: int, apart: tuple[int, int] | None) -> Request:
    """Make a child with that side of a socket, and that standard error.

    Args:
        apart: its side of a socket to its accelerator, and a file in which the buffers of both
            lie; None where the accelerator is a part of the child.
    """
    return Request(_framed(b"\x04"), (theirs, log, *(apart or ())))


def spawn_accelerator_request(theirs: int) -> Request:
    """Make a process that plays the accelerator, with that side of a socket."""
    return Request(_framed(b"\x06"), (theirs,))


def serve_request(child: int, memory: int) -> Request:
    """Serve another child from now on, of which nothing was seen before; there is no reply.

    Args:
        child: the other side of the child's socket; memory: the file for the buffers of both.
    """
    return Request(_framed(b"\x07"), (child, memory))


def account_request() -> Request:
    """Tell what was done since this was asked last."""
    return Request(_framed(b"\x05"))


def read_reply(stream: ByteStream) -> Reply:
    """The next reply.

    Raises:
        InfraError: the bytes are no reply: the kernel has written over the connection.
    """
    (nbytes,) = struct.unpack("<I", stream.take(4))
    if nbytes > MOST_REPLY_NBYTES:
        raise InfraError(f"a reply of {plural(nbytes, 'byte')} from the runner child")
    try:
        return _decode(_Cursor(stream.take(nbytes)))
    except (struct.error, ValueError, KeyError, IndexError) as error:
        raise InfraError(f"a malformed reply from the runner child: {error}") from None


def _framed(payload: bytes) -> bytes:
    return struct.pack("<I", len(payload)) + payload


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<I", len(encoded)) + encoded


def _buffer(spec: BufferSpec) -> bytes:
    return struct.pack("<BQB", _ROLES[spec.role], spec.nbytes, spec.content is not None)


class _Cursor:
    """Takes values from one reply's bytes."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._position = 0

    def numbers(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from("<" + layout, self._payload, self._position)
        self._position += struct.calcsize("<" + layout)
        return values

    def floats(self, count: int) -> tuple[float, ...]:
        values = struct.unpack_from(f"<{count}d", self._payload, self._position)
        self._position += 8 * count
        return values

    def text(self) -> str:
        (nbytes,) = self.numbers("I")
        begin, self._position = self._position, self._position + nbytes
        if self._position > len(self._payload):
            raise ValueError("a text is too short")
        words = self._payload[begin : self._position].decode(errors="replace")
        return words[:LONGEST_TEXT]


def _decode(cursor: _Cursor) -> Reply:
    (kind,) = cursor.numbers("B")
    return _DECODERS[kind](cursor)


def _ready(cursor: _Cursor) -> Ready:
    sandbox, build_id = cursor.text(), cursor.text()
    (apart,) = cursor.numbers("B")
    return Ready(sandbox, build_id, bool(apart))


def _done(cursor: _Cursor) -> DoneReply:
    (run_seconds,) = cursor.floats(1)
    (counts,) = cursor.numbers("B")
    words = cursor.numbers(f"{len(VTA_COUNTERS)}Q")
    (samples,) = cursor.numbers("I")
    sample_cycles = cursor.numbers(f"{samples}Q")
    (repeats,) = cursor.numbers("I")
    seconds = cursor.floats(repeats)
    wall_time = _wall_time(cursor)
    (parts,) = cursor.numbers("I")
    profile = tuple(_call_time(cursor, counts=bool(counts)) for _ in range(parts))
    return DoneReply(
        run_seconds=run_seconds,
        counters=counters_from_words(words) if counts else None,
        sample_cycles=sample_cycles,
        seconds=seconds,
        wall_time=wall_time,
        profile=profile,
        timeline=_timeline(cursor),
    )


def _wall_time(cursor: _Cursor) -> WallTime | None:
    (timed,) = cursor.numbers("B")
    if not timed:
        return None
    minimum, p10, median, p90 = cursor.floats(4)
    calls, regions, rejected = cursor.numbers("3I")
    return WallTime(
        minimum_seconds=minimum,
        p10_seconds=p10,
        median_seconds=median,
        p90_seconds=p90,
        calls=calls,
        regions=regions,
        rejected=rejected,
    )


def _call_time(cursor: _Cursor, *, counts: bool) -> CallTime:
    (cycles,) = cursor.numbers("Q")
    return CallTime(cycles=cycles if counts else None, wall_time=_wall_time(cursor))


def _timeline(cursor: _Cursor) -> tuple[TimelineEvent, ...]:
    (events,) = cursor.numbers("I")
    if events > MOST_EVENTS:
        raise ValueError(f"{events} events of a timeline are over {MOST_EVENTS}")
    return tuple(_event(cursor) for _ in range(events))


def _event(cursor: _Cursor) -> TimelineEvent:
    module, begin_cycle, end_cycle = cursor.numbers("BQQ")
    return timeline_event(module, cursor.text(), begin_cycle, end_cycle)


def _failed(cursor: _Cursor) -> FailedReply:
    (kind,) = cursor.numbers("B")
    return FailedReply(FailureKind(kind), cursor.text())


def _fault(cursor: _Cursor) -> Fault:
    signal, _, address, offset, system_call, exhausted = cursor.numbers("iiQQiB")
    return Fault(
        signal=signal,
        address=address,
        artifact_offset=None if offset == _OUTSIDE else offset,
        system_call=None if system_call < 0 else system_call,
        memory_exhausted=bool(exhausted),
    )


def _started(cursor: _Cursor) -> Started:
    (pid,) = cursor.numbers("i")
    return Started(pid)


def _account(cursor: _Cursor) -> Account:
    (has_failed,) = cursor.numbers("B")
    failed = _failed(cursor) if has_failed else None
    (entries,) = cursor.numbers("I")
    calls = tuple(_calls(cursor) for _ in range(entries))
    return Account(failed, calls, _timeline(cursor))


def _calls(cursor: _Cursor) -> Calls:
    calls, *words = cursor.numbers(f"{1 + len(VTA_COUNTERS)}Q")
    return Calls(calls, counters_from_words(words))


_DECODERS: Final[Mapping[int, Callable[[_Cursor], Reply]]] = {
    1: _ready,
    2: _done,
    3: _failed,
    4: _fault,
    5: _started,
    6: _account,
}
