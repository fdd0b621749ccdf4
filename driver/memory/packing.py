"""Packing in space: buffers in any order of importance, each at the lowest address that is free.

Packing sees the whole life of what was placed before. Good orders are found by a seeded search that
moves buffers which stick out at the top to the front.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from driver.memory.linear_scan import scanned
from driver.memory.span import Span

_TRIES: Final = 100


Order: TypeAlias = Callable[[Span], tuple[int, ...]]

ORDERS: Final[Mapping[str, Order]] = {
    "largest first": lambda s: (-s.nbytes, s.begin),
    "longest first": lambda s: (s.begin - s.end, -s.nbytes),
    "widest first": lambda s: ((s.begin - s.end) * s.nbytes, s.begin),
    "earliest first": lambda s: (s.begin, -s.nbytes),
}
"""Orders worth trying; the first is that of XLA's and TFLite's arenas."""


@dataclass(frozen=True, slots=True)
class Packed:
    """An offset for each span, and how it was found."""

    offsets: tuple[int, ...]
    peak_nbytes: int
    method: str


def packed(
    spans: Sequence[Span], reserved: Sequence[tuple[int, int]], *, goal_nbytes: int, seed: int
) -> Packed:
    """The lowest packing that was found: by linear scan, in several orders, by hill climbing.

    Same spans and seed, same packing. The first that is no higher than `goal_nbytes` is taken.
    """
    best: Packed | None = None
    for found in _packings(spans, reserved, goal_nbytes, seed):
        if best is None or found.peak_nbytes < best.peak_nbytes:
            best = found
        if best.peak_nbytes <= goal_nbytes:
            break
    assert best is not None
    return best


def _packings(
    spans: Sequence[Span], reserved: Sequence[tuple[int, int]], goal: int, seed: int
) -> Iterator[Packed]:
    if all(span.pinned_at is None for span in spans):
        endless = sum(span.nbytes + 2 * span.alignment for span in spans)
        endless += sum(offset + nbytes for offset, nbytes in reserved)
        if offsets := scanned(spans, reserved, endless):
            yield Packed(offsets, _peak(spans, offsets), "linear scan")
    orders = {name: _by(spans, key) for name, key in ORDERS.items()}
    for name, order in orders.items():
        yield _packed(spans, order, reserved, f"packed, {name}")
    for name, order in orders.items():
        yield _climbed(spans, order, reserved, goal, random.Random(seed), name)


def _by(spans: Sequence[Span], key: Order) -> list[int]:
    """The spans by number, pinned ones first."""
    return sorted(range(len(spans)), key=lambda at: (spans[at].pinned_at is None, *key(spans[at])))


def _packed(
    spans: Sequence[Span], order: Sequence[int], reserved: Sequence[tuple[int, int]], method: str
) -> Packed:
    """Pinned spans, then the others in the given order, each as low as those before it allow."""
    offsets = [0] * len(spans)
    placed: list[int] = []
    for at in sorted(order, key=lambda at: spans[at].pinned_at is None):
        span = spans[at]
        obstacles = [(offset, offset + nbytes) for offset, nbytes in reserved]
        obstacles += [
            (offsets[other], offsets[other] + spans[other].nbytes)
            for other in placed
            if span.begin < spans[other].end and spans[other].begin < span.end
        ]
        pinned = span.pinned_at
        offsets[at] = _lowest(obstacles, span) if pinned is None else pinned
        placed.append(at)
    return Packed(tuple(offsets), _peak(spans, offsets), method)


def _peak(spans: Sequence[Span], offsets: Sequence[int]) -> int:
    ends = (offset + span.nbytes for offset, span in zip(offsets, spans, strict=True))
    return max(ends, default=0)


def _lowest(obstacles: Sequence[tuple[int, int]], span: Span) -> int:
    """The lowest aligned offset at which a span meets no obstacle."""
    offset = 0
    for begin, end in sorted(obstacles):
        if offset + span.nbytes > begin:
            offset = max(offset, -(-end // span.alignment) * span.alignment)
    return offset


def _climbed(
    spans: Sequence[Span],
    order: Sequence[int],
    reserved: Sequence[tuple[int, int]],
    goal: int,
    rng: random.Random,
    name: str,
) -> Packed:
    """The best packing that hill climbing finds from an order.

    A move brings a span that ends at the peak nearer to the front; moves that are no worse are
    kept, as by TVM's USMP hill climb.
    """
    method = f"climbed from {name}"
    order = list(order)
    best = now = _packed(spans, order, reserved, method)
    for _ in range(_TRIES):
        ends = [now.offsets[at] + spans[at].nbytes for at in order]
        high = [place for place, end in enumerate(ends) if end == now.peak_nbytes and place]
        if best.peak_nbytes <= goal or not high:
            break
        source = rng.choice(high)
        other = list(order)
        other.insert(rng.randrange(source), other.pop(source))
        found = _packed(spans, other, reserved, method)
        if found.peak_nbytes <= now.peak_nbytes:
            order, now = other, found
        if found.peak_nbytes < best.peak_nbytes:
            best = found
    return best
