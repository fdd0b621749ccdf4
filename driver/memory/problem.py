"""The problem of memory scheduling, as records that JSON can hold.

Operations run on engines and touch buffers; buffers lie in memories, from which they may leave for
a backing memory and come back. Time is counted in ticks, of which a problem says how long they are
by the durations that it has; bytes are bytes.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

from tilefarm.digest import canonical_json

from driver.memory.document import record_of

SCHEMA: Final = 3
_OLDEST: Final = 2
"""Without `barriers`."""


class EngineKind(StrEnum):
    """What computes, and what moves bytes between memories."""

    COMPUTE = "compute"
    DMA = "dma"


class FirstContent(StrEnum):
    """What a buffer holds before any operation wrote it, and where."""

    PRODUCED = "produced"
    """Nothing."""
    PRESENT = "present"
    """Something, in its memory."""
    BACKED = "backed"
    """Something, in the backing memory of its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What runs operations: `instances` at a time. `in_order` ones begin them as they are given."""

    name: str
    kind: EngineKind = EngineKind.COMPUTE
    instances: int = 1
    in_order: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """What it costs to move a buffer: an engine, and ticks. `nbytes_per_tick` 0 costs none."""

    engine: str
    latency_ticks: int = 1
    nbytes_per_tick: int = 0

    def ticks(self, nbytes: int) -> int:
        per_tick = self.nbytes_per_tick
        return max(1, self.latency_ticks + (-(-nbytes // per_tick) if per_tick else 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Addresses from 0 up.

    Attributes:
        capacity_nbytes: 0 means as much as it takes.
        reserved: (offset, nbytes) that nothing may use.
        backing: the memory in which buffers are saved that leave; "" where none may.
        save, read: what it costs to write a buffer there, and to bring it back.
    """

    name: str = "memory"
    capacity_nbytes: int = 0
    alignment: int = 256
    reserved: tuple[tuple[int, int], ...] = ()
    backing: str = ""
    save: Transfer | None = None
    read: Transfer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """One tensor.

    Attributes:
        memory: by name; "" for the first one.
        alignment: of its offset; 0 for its memory's.
        needed_after: it stays in memory beyond the last operation.
        pinned_at: the offset that it must have.
        group: buffers of one group share their offset, as a result that takes its operand's place.
        view_of, view_offset: it is a part of another buffer, from so many bytes on.
        spillable: it may leave its memory.
    """

    name: str
    nbytes: int
    memory: str = ""
    alignment: int = 0
    first_content: FirstContent = FirstContent.PRODUCED
    needed_after: bool = False
    pinned_at: int | None = None
    group: str = ""
    view_of: str = ""
    view_offset: int = 0
    spillable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operation; what it reads and writes is in memory from its begin to its end.

    Attributes:
        engine: by name; "" for the first one.
        duration_ticks: None where `samples` say it: their median counts.
        after: operations that end before it begins, besides those whose results it reads.
        takes_all: it occupies every instance of its engine.
        repeatable: it may run again to bring back its one result, which left without being saved.
            Only what it alone writes comes back so, and only from operands that nobody overwrites.
        in_place: (operand, result) of the same bytes in one memory: the result may have the
            operand's place where nobody wants that any more. A `group` always shares it.
    """

    name: str
    engine: str = ""
    duration_ticks: int | None = 1
    samples: tuple[int, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    takes_all: bool = False
    repeatable: bool = False
    in_place: tuple[tuple[str, str], ...] = ()

    @property
    def ticks(self) -> int:
        """How long it takes."""
        if self.duration_ticks is not None:
            return self.duration_ticks
        return statistics.median_low(self.samples)


def whole_of(buffer: Buffer, by_name: Mapping[str, Buffer]) -> tuple[Buffer, int]:
    """The buffer that a view is one of, however far that goes, and where in it the view begins."""
    begin = 0
    while buffer.view_of:
        begin += buffer.view_offset
        buffer = by_name[buffer.view_of]
    return buffer, begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Buffers, operations in their given order, memories and engines. Names are unique within each.

    The given order says what is meant: an operation reads what those before it wrote, and writes
    after those before it have read. Writers of one buffer without a reader between them write parts
    of it, in any order. Where nobody before wrote what is read, all later writers are waited for.

    Attributes:
        barriers: signals that are live at a time at most; 0: as many as it takes. What runs, an
            operation or a transfer, holds one, on which those wait that come after it.
    """

    buffers: tuple[Buffer, ...]
    ops: tuple[Op, ...]
    memories: tuple[Memory, ...] = (Memory(),)
    engines: tuple[Engine, ...] = (Engine(name="engine"),)
    barriers: int = 0

    def memory_of(self, buffer: Buffer) -> Memory:
        """Where a buffer that is no view lies."""
        return next((m for m in self.memories if m.name == buffer.memory), self.memories[0])

    def engine_of(self, op: Op) -> Engine:
        return next((e for e in self.engines if e.name == op.engine), self.engines[0])

    def alignment_of(self, buffer: Buffer) -> int:
        """The alignment that a buffer's offset must have."""
        return buffer.alignment or self.memory_of(buffer).alignment

    @property
    def loads(self) -> frozenset[str]:
        """Operations that only bring a buffer from the backing memory, which keeps it: what they
        brought may be dropped, and be brought again.
        """
        by_name = {b.name: b for b in self.buffers}

        def is_backed(name: str) -> bool:
            whole, _ = whole_of(by_name[name], by_name)
            return self.memory_of(whole).read is not None

        return frozenset(
            op.name
            for op in self.ops
            if self.engine_of(op).kind is EngineKind.DMA
            and not op.reads
            and len(op.writes) == 1
            and is_backed(op.writes[0])
        )

    def to_json(self) -> str:
        return canonical_json({"schema": SCHEMA, **asdict(self)})

    @classmethod
    def from_json(cls, text: str | bytes) -> Problem:
        """The problem that `to_json` wrote, or somebody by hand.

        Raises:
            UserError: the text is not a problem of this schema; names the place.
        """
        return record_of(cls, text, schema=SCHEMA, oldest=_OLDEST)
