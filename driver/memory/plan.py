"""The plan of a memory problem: what runs when and where each buffer lies meanwhile."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

from tilefarm.digest import canonical_json

from driver.memory.document import record_of

SCHEMA: Final = 3
_OLDEST: Final = 2
"""Without `reuse_edges`."""


class Reason(StrEnum):
    """Why a buffer is in a memory."""

    PRESENT = "present"
    """It was from the begin."""
    WRITTEN = "written"
    """An operation writes it, or loads it, for the first time or again."""
    READ = "read"
    """It came, or came back, from the backing memory."""
    SAVED = "saved"
    """A copy in a backing memory, of a buffer that left or will leave."""


class TransferKind(StrEnum):
    """To the backing memory, or from there."""

    SAVE = "save"
    READ = "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOp:
    """An operation on an instance of its engine, in ticks; instance -1 means all of them."""

    op: str
    begin: int
    end: int
    instance: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTransfer:
    """A buffer is written to the backing memory, or read from there."""

    buffer: str
    kind: TransferKind
    begin: int
    end: int
    engine: str
    instance: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Residency:
    """A rectangle in address x time: bytes of a memory that a buffer has from begin to end."""

    buffer: str
    memory: str
    offset: int
    nbytes: int
    begin: int
    end: int
    reason: Reason

    @property
    def end_offset(self) -> int:
        """The first address above it."""
        return self.offset + self.nbytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What no plan can beat, and why: ticks of the makespan, bytes of a memory's peak, or bytes
    that are moved besides what must be.
    """

    name: str
    ticks: int = 0
    nbytes: int = 0
    memory: str = ""
    extra_nbytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """When everything happens.

    Attributes:
        ops: each operation once, by begin.
        repeats: operations that ran already and run again, to bring back their results.
        peaks: (memory, first address above everything that ever lies in it).
        extra_nbytes: moved besides what must be: saved, and read again.
        reuse_edges: (earlier, later), numbers in `timed`: the later one begins after the end of the
            earlier one, as it uses the same bytes. With them, and with the order on every engine's
            instances, the bytes of the plan are safe whatever anything takes. None in a document
            that is older than they are.
        bounds: what no plan can beat.
        method: which mode found it, and how.
    """

    ops: tuple[PlannedOp, ...]
    residencies: tuple[Residency, ...]
    transfers: tuple[PlannedTransfer, ...] = ()
    repeats: tuple[PlannedOp, ...] = ()
    makespan_ticks: int = 0
    peaks: tuple[tuple[str, int], ...] = ()
    extra_nbytes: int = 0
    reuse_edges: tuple[tuple[int, int], ...] | None = None
    bounds: tuple[Bound, ...] = ()
    method: str = ""

    @property
    def timed(self) -> tuple[PlannedOp | PlannedTransfer, ...]:
        """All that runs: operations, repeats and transfers, in a row."""
        return (*self.ops, *self.repeats, *self.transfers)

    @property
    def order(self) -> tuple[str, ...]:
        """Names of operations in the order of their begin."""
        return tuple(each.op for each in self.ops)

    @property
    def offsets(self) -> dict[str, int]:
        """Offset of every buffer by name, where it lies first."""
        return {r.buffer: r.offset for r in reversed(self.residencies) if r.reason != Reason.SAVED}

    @property
    def bound_ticks(self) -> int:
        """No plan has a smaller makespan than this."""
        return max((b.ticks for b in self.bounds), default=0)

    def peak_nbytes(self, memory: str) -> int:
        return dict(self.peaks).get(memory, 0)

    def bound_nbytes(self, memory: str) -> int:
        """No plan that keeps these times has a smaller peak than this."""
        return max((b.nbytes for b in self.bounds if b.memory == memory), default=0)

    @property
    def gap(self) -> float:
        """The makespan by its bound: 1 where it is the best there is."""
        return self.makespan_ticks / self.bound_ticks if self.bound_ticks else 1.0

    def to_json(self) -> str:
        return canonical_json({"schema": SCHEMA, **asdict(self)})

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """The plan that `to_json` wrote.

        Raises:
            UserError: the text is not a plan of this schema; names the place.
        """
        return record_of(cls, text, schema=SCHEMA, oldest=_OLDEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasible:
    """Why there is no plan: an operation wants more of a memory than that has.

    `op` is "" where it is no single operation but what was tried.
    """

    op: str
    memory: str
    demand_nbytes: int
    capacity_nbytes: int

    @property
    def why(self) -> str:
        if not self.op:
            return (
                f"no plan was found within the {self.capacity_nbytes} bytes of {self.memory}; the "
                f"best one takes {self.demand_nbytes}"
            )
        return (
            f"operation {self.op} needs {self.demand_nbytes} bytes of {self.memory} at once, which "
            f"has {self.capacity_nbytes}"
        )
