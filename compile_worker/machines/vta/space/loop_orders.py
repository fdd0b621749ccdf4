"""The orders that a space offers: of loops over tiles, and of loops inside one instruction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final

from compile_worker.machines.vta.space.layer import REDUCED, SPATIAL

TILE_ORDERS: Final = (
    ("co", "oh", "ow"),
    ("oh", "ow", "co"),
    ("oh", "co", "ow"),
    ("co", "ow", "oh"),
    ("ow", "oh", "co"),
    ("ow", "co", "oh"),
)
"""Orders of the loops over output tiles, outermost first."""

MICRO_ORDERS: Final = (
    ("ci", "kh", "kw", "co", "oh", "ow"),
    ("co", "oh", "ci", "kh", "kw", "ow"),
    ("oh", "ow", "ci", "kh", "kw", "co"),
    ("co", "ci", "kh", "kw", "oh", "ow"),
)
"""Orders inside one GEMM: the two outermost loops longer than one fold into hardware loops.

What is inside the last reduction loop decides how soon an accumulator is written again.
"""


def distinct_tile_orders() -> Iterator[tuple[int, ...]]:
    """(order, is co, oh, ow tiled more than once): of equal orders only the first.

    A loop that runs once can be anywhere.
    """
    for flags in product((0, 1), repeat=3):
        yield from ((order, *flags) for order in _distinct(TILE_ORDERS, SPATIAL, flags))


def distinct_micro_orders() -> Iterator[tuple[int, tuple[int, ...]]]:
    """(order, is ci, kh, kw, co, oh, ow longer than one): of equal orders only the first."""
    axes = (*REDUCED, *SPATIAL)
    for flags in product((0, 1), repeat=len(axes)):
        yield from ((order, flags) for order in _distinct(MICRO_ORDERS, axes, flags))


def long_loops(order: tuple[str, ...], flags: Mapping[str, int]) -> tuple[str, ...]:
    """The loops of an order that are longer than one."""
    return tuple(axis for axis in order if flags[axis])


def _distinct(
    orders: tuple[tuple[str, ...], ...], axes: tuple[str, ...], flags: tuple[int, ...]
) -> Iterator[int]:
    seen: set[tuple[str, ...]] = set()
    by_axis = dict(zip(axes, flags, strict=True))
    for at, order in enumerate(orders):
        left = long_loops(order, by_axis)
        if left not in seen:
            seen.add(left)
            yield at
