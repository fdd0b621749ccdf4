"""Linear scan: buffers come and go in the order of time and take the best gap that is free.

The rules of choosing a gap and of fixed ranges are those that the linear-scan
allocator of Intel's npu_compiler is tested for (vpux_compiler unit tests, `linear_scan_tests`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from driver.memory.span import Span


@dataclass(frozen=True, slots=True)
class BufferRequest:
    """Bytes that somebody wants under a name."""

    name: str
    nbytes: int
    alignment: int = 1


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

    def cut(self, request: BufferRequest) -> int | None:
        """The offset at which the request lies in this gap; None when it does not fit."""
        offset = -(-self.begin // request.alignment) * request.alignment
        return offset if offset + request.nbytes <= self.end else None


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

    def allocate(self, request: BufferRequest) -> Range | None:
        """Places it in the smallest gap before the open end that fits, or at the open end.

        None, and nothing has changed, when it fits nowhere.
        """
        gaps = self._gaps()
        fits = [
            (gap.end - gap.begin, at, offset)
            for at, gap in enumerate(gaps)
            if (offset := gap.cut(request)) is not None
        ]
        inner = [fit for fit in fits if fit[1] != len(gaps) - 1]
        if not fits:
            return None
        placed = self._taken[request.name] = Range(request, min(inner or fits)[2])
        return placed

    def free(self, name: str) -> None:
        """Gives back what is taken under a name."""
        del self._taken[name]

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


def scanned(
    spans: Sequence[Span], reserved: Sequence[tuple[int, int]], room_nbytes: int
) -> tuple[int, ...] | None:
    """An offset for each span, scanned in the order of their begin; None when the room runs out.

    Of spans that begin together the larger is placed first.
    """
    scan = LinearScan(room_nbytes, reserved)
    offsets = [0] * len(spans)
    alive: list[int] = []
    for at in sorted(range(len(spans)), key=lambda at: (spans[at].begin, -spans[at].nbytes)):
        for old in [each for each in alive if spans[each].end <= spans[at].begin]:
            scan.free(str(old))
            alive.remove(old)
        found = scan.allocate(BufferRequest(str(at), spans[at].nbytes, spans[at].alignment))
        if found is None:
            return None
        alive.append(at)
        offsets[at] = found.offset
    return tuple(offsets)
