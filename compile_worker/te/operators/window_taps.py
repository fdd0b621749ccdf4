"""Taps of sliding windows along one axis, sorted by who reads what they read.

Windows of 3 with stride 2 read positions 0 1 2, 2 3 4, 4 5 6: tap 1 of each is its own (1, 3, 5),
the others are shared (0, 2, 4, 6). A maximum can grow in the place of what nobody else reads.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AxisPiece:
    """Positions first, first + stride, first + 2 * stride, ... of an axis: `extent` of them."""

    first: int
    extent: int


@dataclass(frozen=True, slots=True)
class Taps:
    """What the windows of one axis read.

    `start` has one position for each window, and no other window reads it; None if there is no such
    tap. `others` are the remaining taps: window w reads position w + offset of the piece.
    """

    start: AxisPiece | None
    others: tuple[tuple[AxisPiece, int], ...]

    @property
    def pieces(self) -> tuple[AxisPiece, ...]:
        """Every piece, the start first."""
        first = () if self.start is None else (self.start,)
        return tuple(dict.fromkeys((*first, *(piece for piece, _ in self.others))))


def taps(kernel: int, stride: int, windows: int) -> Taps:
    """The taps of `windows` windows.

    taps(3, 2, 4)  ->  start 1 3 5 7;  others: tap 0 and 2 in 0 2 4 6 8, offsets 0 and 1
    """
    own = (tap for tap in range(kernel) if tap < stride and tap + stride >= kernel)
    start = next(own, None)
    return _without(start, kernel, stride, windows)


def copied_taps(kernel: int, stride: int, windows: int) -> Taps:
    """The same, where tap 0 can be had twice if no tap is read by one window only."""
    own = taps(kernel, stride, windows)
    return own if own.start is not None else _without(0, kernel, stride, windows)


def _without(start: int | None, kernel: int, stride: int, windows: int) -> Taps:
    others: list[tuple[AxisPiece, int]] = []
    rest = [tap for tap in range(kernel) if tap != start]
    for tap in rest:
        same = [each for each in rest if (each - tap) % stride == 0]
        piece = AxisPiece(same[0], windows + (same[-1] - same[0]) // stride)
        others.append((piece, (tap - same[0]) // stride))
    return Taps(None if start is None else AxisPiece(start, windows), tuple(others))
