"""Packing in space: buffers in any order of importance, each at the lowest address that is free.

Where linear scan sees only what is alive now, packing sees the whole life of what was placed
before. Good orders are found by a seeded search that moves buffers which stick out at the top to
the front.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from driver.memory.linear_scan import placement_of
from driver.memory.list_scheduler import LiveRange
from driver.memory.problem import AddressRange, Placement

Order: TypeAlias = Callable[[LiveRange], tuple[int, ...]]

ORDERS: Final[Mapping[str, Order]] = {
    "largest first": lambda r: (-r.buffer.nbytes, r.first_op),
    "longest first": lambda r: (r.first_op - r.last_op, -r.buffer.nbytes),
    "widest first": lambda r: ((r.first_op - r.last_op - 1) * r.buffer.nbytes, r.first_op),
    "earliest first": lambda r: (r.first_op, -r.buffer.nbytes),
}
"""Orders worth trying; the first is that of XLA's and TFLite's arenas."""


def pack(ranges: Sequence[LiveRange], memory: AddressRange) -> tuple[Placement, ...]:
    """Places ranges in the given order, each as low as those before it allow."""
    placed: list[Placement] = []
    for live in ranges:
        alignment = live.buffer.alignment or memory.alignment
        obstacles = [(p.offset, p.end) for p in placed if _overlaps(live, p)]
        obstacles += [(offset, offset + nbytes) for offset, nbytes in memory.reserved]
        placed.append(placement_of(live, _lowest(obstacles, live.buffer.nbytes, alignment)))
    return tuple(placed)


def improved(
    ranges: Sequence[LiveRange], memory: AddressRange, *, goal_nbytes: int, tries: int, seed: int
) -> tuple[Placement, ...]:
    """The best packing that hill climbing finds from `ranges` in their order, within `tries`.

    A move brings a buffer that ends at the peak nearer to the front; moves that are no worse are
    kept, as by TVM's USMP hill climb. Stops early at `goal_nbytes`.
    """
    rng = random.Random(seed)
    order = list(ranges)
    best = current = pack(order, memory)
    for _ in range(tries):
        if peak_of(best) <= goal_nbytes:
            break
        high = [i for i, p in enumerate(current) if p.end == peak_of(current) and i]
        if not high:
            break
        source = rng.choice(high)
        candidate = list(order)
        candidate.insert(rng.randrange(source), candidate.pop(source))
        packed = pack(candidate, memory)
        if peak_of(packed) <= peak_of(current):
            order, current = candidate, packed
        if peak_of(packed) < peak_of(best):
            best = packed
    return best


def peak_of(placements: Sequence[Placement]) -> int:
    """The first address above everything that is placed."""
    return max((p.end for p in placements), default=0)


def _overlaps(live: LiveRange, placed: Placement) -> bool:
    return live.first_op <= placed.last_op and placed.first_op <= live.last_op


def _lowest(obstacles: Sequence[tuple[int, int]], nbytes: int, alignment: int) -> int:
    """The lowest aligned offset at which `nbytes` meet no obstacle."""
    offset = 0
    for begin, end in sorted(obstacles):
        if offset + nbytes > begin:
            offset = max(offset, -(-end // alignment) * alignment)
    return offset
