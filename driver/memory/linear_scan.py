"""Linear scan: buffers come and go in the order of time and take the best gap that is free.

The rules of choosing a gap and of fixed ranges are those that the linear-scan allocator of Intel's
npu_compiler is tested for (vpux_compiler unit tests, `linear_scan_tests`).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from driver.memory.span import Span


@dataclass(frozen=True, slots=True)
class BufferRequest:
    """Bytes that somebody wants under a name; at a given offset, if it is pinned."""

    name: str
    nbytes: int
    alignment: int = 1
    pinned_at: int | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes that are taken: [offset, offset + request.nbytes)."""

    request: BufferRequest
    offset: int

    @property
    def end(self) -> int:
        return self.offset + self.request.nbytes

    def meets(self, other: Range) -> bool:
        """Whether the two share bytes."""
        return self.offset < other.end and other.offset < self.end


class LinearScan:
    """The free and taken bytes of one memory.

    Args:
        capacity_nbytes: size of the memory.
        fixed: (offset, nbytes) that are never given away.
        pinned: (offset, nbytes) that are only given to requests pinned there.
    """

    def __init__(
        self,
        capacity_nbytes: int,
        fixed: Iterable[tuple[int, int]] = (),
        pinned: Iterable[tuple[int, int]] = (),
    ) -> None:
        self._capacity = capacity_nbytes
        self._kept = sorted((o, o + nbytes) for o, nbytes in (*fixed, *pinned) if nbytes)
        self._taken: dict[str, Range] = {}
        self._blocks = list(self._kept)

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What is taken, by address."""
        return tuple(sorted(self._taken.values(), key=lambda r: (r.offset, r.end)))

    def allocate(self, request: BufferRequest, *, downward: bool = False) -> Range | None:
        """Places it in the smallest gap before the open end that fits, or at the open end.

        Upward, the open end is the highest gap, and the low end of a gap is taken; downward it is
        the other way round. None, and nothing has changed, when it fits nowhere.
        """
        placed = self.allocate_all([request], downward=downward)
        return placed[0] if placed else None

    def allocate_all(
        self, requests: Sequence[BufferRequest], *, downward: bool = False
    ) -> tuple[Range, ...] | None:
        """All of them in the given order, or None, and nothing has changed."""
        placed = self._trial(requests, downward)
        for each in placed or ():
            self._taken[each.request.name] = each
            insort(self._blocks, (each.offset, each.end))
        return placed

    def fits(self, requests: Sequence[BufferRequest]) -> bool:
        """Whether `allocate_all` would place them."""
        return self._trial(requests, downward=False) is not None

    def free(self, name: str) -> None:
        """Gives back what is taken under a name."""
        gone = self._taken.pop(name)
        self._blocks.remove((gone.offset, gone.end))

    def _trial(self, requests: Sequence[BufferRequest], downward: bool) -> tuple[Range, ...] | None:
        blocks = list(self._blocks)
        placed: list[Range] = []
        for request in requests:
            offset: int | None
            if not request.nbytes:
                offset = request.pinned_at or 0
            elif request.pinned_at is None:
                offset = _best_fit(list(_gaps(blocks, self._capacity)), request, downward)
            else:
                offset = self._at_pin(request, placed)
            if offset is None:
                return None
            placed.append(Range(request, offset))
            insort(blocks, (offset, offset + request.nbytes))
        return tuple(placed)

    def _at_pin(self, request: BufferRequest, placed: Sequence[Range]) -> int | None:
        assert request.pinned_at is not None
        wanted = Range(request, request.pinned_at)
        others = (*self._taken.values(), *placed)
        free = wanted.end <= self._capacity and not any(wanted.meets(other) for other in others)
        return request.pinned_at if free else None


def _gaps(blocks: Iterable[tuple[int, int]], capacity: int) -> Iterator[tuple[int, int]]:
    """(begin, end) of what lies between blocks that are sorted."""
    at = 0
    for begin, end in blocks:
        if begin > at:
            yield at, begin
        at = max(at, end)
    if at < capacity:
        yield at, capacity


def _best_fit(gaps: list[tuple[int, int]], request: BufferRequest, downward: bool) -> int | None:
    """The offset in the smallest gap that fits; in the last one only if no other does."""
    nbytes, step = request.nbytes, request.alignment
    if downward:
        gaps.reverse()
    best: tuple[int, int] | None = None
    for begin, end in gaps[:-1]:
        offset = (end - nbytes) // step * step if downward else -(-begin // step) * step
        fits = begin <= offset and offset + nbytes <= end
        if fits and (best is None or end - begin < best[0]):
            best = end - begin, offset
    if best is None and gaps:
        begin, end = gaps[-1]
        offset = (end - nbytes) // step * step if downward else -(-begin // step) * step
        if begin <= offset and offset + nbytes <= end:
            return offset
    return None if best is None else best[1]


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
