"""How many of the best remedies it takes: doubling, then bisection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def first_enough(found: Sequence[T], is_enough: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """The fewest of the first ones that are enough; all of them are, or there are no more."""
    too_few, count = 0, 1
    while count < len(found) and not is_enough(tuple(found[:count])):
        too_few, count = count, min(2 * count, len(found))
    while count - too_few > 1:
        middle = (count + too_few) // 2
        if is_enough(tuple(found[:middle])):
            count = middle
        else:
            too_few = middle
    return tuple(found[:count])
