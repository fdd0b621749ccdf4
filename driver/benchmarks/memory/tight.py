"""A whole memory over time, cut into rectangles: they fit, and only without a byte of waste."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from driver.benchmarks.figures import Figure
from driver.memory.allocate import Allocation, Interval, allocate

CAPACITY_NBYTES: Final = 2**20
_UNIT_NBYTES: Final = 1024
_MOMENTS: Final = 2000
COUNTS: Final = (50, 100, 200, 300, 500)
_SEEDS: Final = 4
_NODES: Final = 500_000
"""About a second at most."""

Rectangle: TypeAlias = tuple[int, int, int, int]
"""Moments [lower, upper) and units [bottom, top)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How rectangles are cut.

    Attributes:
        across: the share of cuts through time.
        windmills: the share of cuts into five, which no straight cuts can make.
        step: cuts through time are at multiples of it; a large one leaves few sections.
    """

    across: float = 0.5
    windmills: float = 0.0
    step: int = 1


SHAPES: Final = {
    "straight cuts": Shape(),
    "windmills": Shape(windmills=0.4),
    "long lives": Shape(across=0.25),
    "40 sections": Shape(step=50),
}


def figures(clock: Callable[[], float]) -> list[Figure]:
    """How many of each shape and number of buffers are solved."""
    found = []
    began = clock()
    for name, shape in SHAPES.items():
        for count in COUNTS:
            solved = sum(_is_solved(cut(count, shape, seed)) for seed in range(_SEEDS))
            row = f"{name}, {count} buffers: solved of {_SEEDS}"
            found.append(Figure(name=row, value=solved, unit=""))
    cases = len(found) * _SEEDS
    share = 100 * sum(each.value for each in found) / cases
    return [
        *found,
        Figure(name="solved", value=share, unit="%", goal=80.0, more_is_better=True),
        Figure(name="mean of a problem", value=(clock() - began) / cases, unit="s"),
    ]


def cut(count: int, shape: Shape, seed: int) -> list[Interval]:
    """A memory cut into about so many buffers."""
    random_ = random.Random(f"{count} {shape} {seed}")
    rectangles: list[Rectangle] = [(0, _MOMENTS, 0, CAPACITY_NBYTES // _UNIT_NBYTES)]
    for _ in range(200 * count):
        if len(rectangles) >= count:
            break
        drawn = random_.sample(range(len(rectangles)), min(3, len(rectangles)))
        largest = max(drawn, key=lambda at: _area(rectangles[at]))
        rectangles[largest : largest + 1] = _pieces(rectangles[largest], shape, random_)
    random_.shuffle(rectangles)
    return [
        Interval(lower=lower, upper=upper, nbytes=(top - bottom) * _UNIT_NBYTES)
        for lower, upper, bottom, top in rectangles
    ]


def _is_solved(intervals: list[Interval]) -> bool:
    answer = allocate(intervals, capacity_nbytes=CAPACITY_NBYTES, nodes=_NODES, seconds=60.0)
    return isinstance(answer, Allocation)


def _area(rectangle: Rectangle) -> int:
    lower, upper, bottom, top = rectangle
    return (upper - lower) * (top - bottom)


def _pieces(rectangle: Rectangle, shape: Shape, random_: random.Random) -> list[Rectangle]:
    lower, upper, bottom, top = rectangle
    moments = [t for t in _inside(lower, upper) if t % shape.step == 0]
    heights = _inside(bottom, top)
    if random_.random() < shape.windmills and len(moments) > 8 and len(heights) > 8:
        return list(_windmill(rectangle, random_))
    if random_.random() < shape.across:
        if not moments:
            return [rectangle]
        at = random_.choice(moments)
        return [(lower, at, bottom, top), (at, upper, bottom, top)]
    if not heights:
        return [rectangle]
    at = random_.choice(heights)
    return [(lower, upper, bottom, at), (lower, upper, at, top)]


def _windmill(rectangle: Rectangle, random_: random.Random) -> Iterator[Rectangle]:
    lower, upper, bottom, top = rectangle
    x, right = sorted(random_.sample(_inside(lower, upper), 2))
    y, high = sorted(random_.sample(_inside(bottom, top), 2))
    yield lower, right, bottom, y
    yield right, upper, bottom, high
    yield x, upper, high, top
    yield lower, x, y, top
    yield x, right, y, high


def _inside(begin: int, end: int) -> range:
    return range(begin + 1, end)
