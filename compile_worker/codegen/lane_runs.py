"""Lanes that lie side by side in memory: what one load or store can move at once.

offsets 0 1 2 3 8 9 10 11    ->    lanes 0-3 at 0, lanes 4-7 at 8
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compile_worker.ir.expr import Expr


@dataclass(frozen=True, slots=True)
class LanePlaces:
    """Where the lanes of one access are: at `base`, plus an offset for each, in elements."""

    base: Expr
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LaneRun:
    """Lanes `lane` up to `lane + count` that are at `offset` and directly behind it."""

    lane: int
    count: int
    offset: int


def runs(offsets: Sequence[int], active: Sequence[bool]) -> Iterator[LaneRun]:
    """Lanes that are active and side by side in memory, in order."""
    begin = 0
    for lane in range(1, len(offsets) + 1):
        joined = (
            lane < len(offsets)
            and active[lane] == active[begin]
            and offsets[lane] == offsets[lane - 1] + 1
        )
        if not joined:
            if active[begin]:
                yield LaneRun(begin, lane - begin, offsets[begin])
            begin = lane
