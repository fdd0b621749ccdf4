"""Linear scan: buffers come and go in the order of time and take the best gap that is free.

The rules of choosing a gap, of fixed ranges, directions and spilling are those that the linear-scan
allocator of Intel's npu_compiler is tested for (vpux_compiler unit tests, `linear_scan_tests`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from driver.memory.list_scheduler import LiveRange
from driver.memory.problem import AddressRange, Placement


class Direction(Enum):
    """From which end of a gap a buffer is cut."""

    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class BufferRequest:
    """Bytes that somebody wants under a name. Light ones are spilled first."""

    name: str
    nbytes: int
    alignment: int = 1
    spill_weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes that are taken: [offset, offset + request.nbytes)."""

    request: BufferRequest
    offset: int

    @property
    def end(self) -> int:
        return self.offset + self.request.nbytes


@dataclass(frozen=True, slots=True)
class _Gap:
    begin: int
    end: int

    def cut(self, request: BufferRequest, direction: Direction) -> int | None:
        """The offset at which the request lies in this gap; None when it does not fit."""
        step = request.alignment
        if direction is Direction.UP:
            offset = -(-self.begin // step) * step
            return offset if offset + request.nbytes <= self.end else None
        offset = (self.end - request.nbytes) // step * step
        return offset if offset >= self.begin else None


class LinearScan:
    """The free and taken bytes of one memory.

    Args:
        capacity_nbytes: size of the memory.
        fixed: (offset, nbytes) that are never given away.
    """

    def __init__(self, capacity_nbytes: int, fixed: Iterable[tuple[int, int]] = ()) -> None:
        self._capacity = capacity_nbytes
        self._fixed = tuple((offset, offset + nbytes) for offset, nbytes in fixed if nbytes)
        self._taken: dict[str, Range] = {}

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What is taken, by address."""
        return tuple(sorted(self._taken.values(), key=lambda r: (r.offset, r.end)))

    def allocate(
        self, requests: Sequence[BufferRequest], direction: Direction = Direction.UP
    ) -> tuple[Range, ...] | None:
        """Places all requests in the given order, or none: then None, and nothing has changed."""
        before = dict(self._taken)
        for request in requests:
            offset = self._find(request, direction)
            if offset is None:
                self._taken = before
                return None
            self._taken[request.name] = Range(request, offset)
        return tuple(self._taken[r.name] for r in requests)

    def allocate_spilling(
        self, request: BufferRequest, direction: Direction = Direction.UP
    ) -> tuple[Range, tuple[Range, ...]] | None:
        """Places one request, at the cost of lighter ones if need be: (its range, those spilled).

        Ranges are removed by growing weight until the request fits; those that do not lie where it
        then lies stay after all. None, and nothing has changed, when even an empty memory is too
        small.
        """
        before = dict(self._taken)
        lightest = sorted(self._taken.values(), key=lambda r: r.request.spill_weight)
        removed: list[Range] = []
        while (placed := self.allocate([request], direction)) is None:
            if not lightest:
                self._taken = before
                return None
            victim = lightest.pop(0)
            removed.append(victim)
            del self._taken[victim.request.name]
        (own,) = placed
        spilled = tuple(r for r in removed if r.offset < own.end and own.offset < r.end)
        self._taken.update({r.request.name: r for r in removed if r not in spilled})
        return own, spilled

    def free(self, name: str) -> None:
        """Gives back what is taken under a name."""
        del self._taken[name]

    def _find(self, request: BufferRequest, direction: Direction) -> int | None:
        """Best fit among all gaps but the last one in the direction; that one if no other fits."""
        gaps = self._gaps()
        if direction is Direction.DOWN:
            gaps.reverse()
        fits = [
            (gap.end - gap.begin, at, offset)
            for at, gap in enumerate(gaps)
            if (offset := gap.cut(request, direction)) is not None
        ]
        inner = [fit for fit in fits if fit[1] != len(gaps) - 1]
        return min(inner or fits)[2] if fits else None

    def _gaps(self) -> list[_Gap]:
        taken = sorted([*self._fixed, *((r.offset, r.end) for r in self._taken.values())])
        gaps, at = [], 0
        for begin, end in taken:
            if begin > at:
                gaps.append(_Gap(at, begin))
            at = max(at, end)
        if at < self._capacity:
            gaps.append(_Gap(at, self._capacity))
        return gaps


def place(
    ranges: Sequence[LiveRange], memory: AddressRange, capacity_nbytes: int
) -> tuple[Placement, ...] | None:
    """Runs the scan over live ranges in the order of their first use; None when it gets stuck.

    Of buffers that begin together the larger is placed first.
    """
    scan = LinearScan(capacity_nbytes, memory.reserved)
    placed: dict[str, Placement] = {}
    alive: list[LiveRange] = []
    for new in sorted(ranges, key=lambda r: (r.first_op, -r.buffer.nbytes)):
        for old in [r for r in alive if r.last_op < new.first_op]:
            scan.free(old.buffer.name)
            alive.remove(old)
        request = BufferRequest(
            new.buffer.name, new.buffer.nbytes, new.buffer.alignment or memory.alignment
        )
        found = scan.allocate([request])
        if found is None:
            return None
        alive.append(new)
        placed[new.buffer.name] = placement_of(new, found[0].offset)
    return tuple(placed[r.buffer.name] for r in ranges)


def placement_of(live: LiveRange, offset: int) -> Placement:
    """A live range at an address."""
    return Placement(
        buffer=live.buffer.name,
        offset=offset,
        nbytes=live.buffer.nbytes,
        first_op=live.first_op,
        last_op=live.last_op,
    )
