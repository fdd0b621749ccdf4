"""The problem and the plan of memory scheduling, as records that JSON can hold.

A problem has buffers, and operations that read and write them; a plan has an order of the
operations and one place for every buffer. Time is counted in positions of that order.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from tilefarm.digest import canonical_json
from tilefarm.documents import decoded

SCHEMA: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """One tensor. `needed_before` has contents before the first operation, `needed_after` keeps
    them beyond the last one. `alignment` 0 means that of the memory.
    """

    name: str
    nbytes: int
    alignment: int = 0
    needed_before: bool = False
    needed_after: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One step; what it reads and writes is in memory from its begin to its end."""

    name: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    duration_cycles: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRange:
    """An address range from 0 up. `capacity_nbytes` 0 means as much as it takes.

    `reserved` are (offset, nbytes) that nothing may use.
    """

    capacity_nbytes: int = 0
    alignment: int = 256
    reserved: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Buffers, operations in their given order, and the memory. Names are unique within each."""

    buffers: tuple[Buffer, ...]
    ops: tuple[Op, ...]
    memory: AddressRange = AddressRange()

    def alignment_of(self, buffer: Buffer) -> int:
        """The alignment that a buffer's offset must have."""
        return buffer.alignment or self.memory.alignment

    def to_json(self) -> str:
        return canonical_json({"schema": SCHEMA, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> Problem:
        """The problem that `to_json` wrote.

        Raises:
            ValueError, KeyError, TypeError: the text is not a problem of this schema.
        """
        document = _of_schema(text)
        memory = document["memory"]
        return cls(
            buffers=tuple(Buffer(**row) for row in document["buffers"]),
            ops=tuple(
                Op(
                    name=row["name"],
                    reads=tuple(row["reads"]),
                    writes=tuple(row["writes"]),
                    duration_cycles=row["duration_cycles"],
                )
                for row in document["ops"]
            ),
            memory=AddressRange(
                capacity_nbytes=memory["capacity_nbytes"],
                alignment=memory["alignment"],
                reserved=tuple((offset, nbytes) for offset, nbytes in memory["reserved"]),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A rectangle in address x time: the buffer holds these bytes from one operation to another.

    `first_op` and `last_op` are positions in the plan's order, both included.
    """

    buffer: str
    offset: int
    nbytes: int
    first_op: int
    last_op: int

    @property
    def end(self) -> int:
        """The first address above the buffer."""
        return self.offset + self.nbytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Names of operations in the order to run them, one placement per buffer, and how good it is.

    No plan in this order has a peak below `bound_nbytes`. `method` says which allocation won.
    """

    order: tuple[str, ...]
    placements: tuple[Placement, ...]
    peak_nbytes: int
    bound_nbytes: int
    method: str = ""

    @property
    def offsets(self) -> dict[str, int]:
        """Offset of every buffer by name."""
        return {p.buffer: p.offset for p in self.placements}

    def to_json(self) -> str:
        return canonical_json({"schema": SCHEMA, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan that `to_json` wrote.

        Raises:
            ValueError, KeyError, TypeError: the text is not a plan of this schema.
        """
        document = _of_schema(text)
        return cls(
            order=tuple(document["order"]),
            placements=tuple(Placement(**row) for row in document["placements"]),
            peak_nbytes=document["peak_nbytes"],
            bound_nbytes=document["bound_nbytes"],
            method=document["method"],
        )


def _of_schema(text: str) -> dict[str, Any]:
    document = decoded(text)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"not a document of schema {SCHEMA}")
    return document
