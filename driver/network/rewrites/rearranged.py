"""Moves that lose nothing, as what they are in most networks: axes split, permuted and joined."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.ir import IndexArray, Shape


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """A row-major source of extents `split`, and the axes of these that each result's axis joins.

    Attributes:
        split: extents of the source's axes, all but the batch.
        joined: for every axis of the result the axes of `split` that it consists of, the slowest
            first; none for one of extent 1.
    """

    split: Shape
    joined: tuple[tuple[int, ...], ...]

    def places(self, split: Shape) -> IndexArray:
        """The index of the same move of a source whose axes have other extents."""
        order = [axis for axes in self.joined for axis in axes]
        places = np.arange(math.prod(split), dtype=np.int32).reshape(split).transpose(order)
        return places.reshape([math.prod(split[axis] for axis in axes) for axes in self.joined])


def rearrangement_of(index: IndexArray) -> Rearrangement | None:
    """The rearrangement that takes every element of its source once, if that is what `index` does.

    index [...] has the row-major places of the result's elements in the source, of as many.
    """
    digits = [digits_of(_line(index, axis)) for axis in range(index.ndim)]
    if any(each is None for each in digits):
        return None
    known = [each for each in digits if each is not None]
    by_stride = sorted(
        ((stride, extent, axis) for axis, each in enumerate(known) for stride, extent in each),
        reverse=True,
    )
    after = 1
    for stride, extent, _ in reversed(by_stride):
        if stride != after:
            return None
        after *= extent
    number = {(stride, axis): at for at, (stride, _, axis) in enumerate(by_stride)}
    joined = tuple(
        tuple(number[stride, axis] for stride, _ in each) for axis, each in enumerate(known)
    )
    found = Rearrangement(tuple(extent for _, extent, _ in by_stride), joined)
    same = np.array_equal(found.places(found.split).reshape(-1), index.reshape(-1))
    return found if same else None


def is_bijective(index: IndexArray, elements: int) -> bool:
    """Whether every one of so many elements is taken once."""
    if index.size != elements or (index.size and index.min() < 0):
        return False
    return bool((np.bincount(index.reshape(-1), minlength=elements) == 1).all())


def inverse(index: NDArray[Any]) -> IndexArray:
    """The flat index of the move back, of one that takes every element once."""
    back = np.empty(index.size, np.int32)
    back[index.reshape(-1)] = np.arange(index.size, dtype=np.int32)
    return back


def _line(index: IndexArray, axis: int) -> IndexArray:
    """Places along an axis, from the first."""
    line = np.moveaxis(index, axis, -1).reshape(-1, index.shape[axis])[0]
    return np.asarray(line - line[0], np.int32)


def digits_of(line: IndexArray) -> list[tuple[int, int]] | None:
    """Stride and extent of every axis that is walked along a line, the slowest first."""
    found: list[tuple[int, int]] = []
    while len(line) > 1:
        stride = int(line[1])
        steps = np.arange(len(line)) * stride == line
        even = len(line) if steps.all() else int(steps.argmin())
        extent = next(_divisors_to(len(line), even), 1)
        if stride < 1 or extent < 2:
            return None
        found.append((stride, extent))
        line = line[::extent]
    return found[::-1]


def _divisors_to(number: int, most: int) -> Iterator[int]:
    """The divisors of a number from `most` down to 1."""
    return (each for each in range(most, 0, -1) if number % each == 0)
