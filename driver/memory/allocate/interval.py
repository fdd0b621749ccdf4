"""What is allocated, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

END: Final = 2**62 - 2
"""Addresses and moments are below this, so that sums of two fit 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A buffer of `nbytes` that lives in [lower, upper), and again in each of `later`.

    It has one offset in all its lifetimes: a multiple of `alignment`, or `fixed_offset`.
    """

    lower: int
    upper: int
    nbytes: int
    alignment: int = 1
    fixed_offset: int | None = None
    later: tuple[tuple[int, int], ...] = ()

    @property
    def lifetimes(self) -> tuple[tuple[int, int], ...]:
        """All of them, as (lower, upper)."""
        return ((self.lower, self.upper), *self.later)


def flaw(interval: Interval) -> str:
    """Why there can be no such interval; empty where there can."""
    if interval.nbytes < 0:
        return f"{interval.nbytes} bytes"
    if interval.alignment < 1:
        return f"an alignment of {interval.alignment}"
    if not -END < interval.lower < interval.upper < END:
        return f"it lives from {interval.lower} to {interval.upper}"
    if interval.later and (why := _later_flaw(interval)):
        return why
    fixed = interval.fixed_offset
    if fixed is not None and (fixed < 0 or fixed % interval.alignment):
        return f"it cannot lie at {fixed} with an alignment of {interval.alignment}"
    return ""


def _later_flaw(interval: Interval) -> str:
    for lower, upper in interval.later:
        if not -END < lower < upper < END:
            return f"it lives from {lower} to {upper}"
    for (_, end), (begin, _) in pairwise(sorted(interval.lifetimes)):
        if begin < end:
            return f"its lifetimes overlap at {begin}"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """An offset for each interval, in their order.

    Attributes:
        peak_nbytes: the first address above all of them.
        bound_nbytes: no allocation has a smaller peak than this.
        is_optimal: no allocation has a smaller peak than this one.
        nodes: of the exact search; 0 where packing did.
    """

    offsets: tuple[int, ...]
    peak_nbytes: int
    bound_nbytes: int
    is_optimal: bool
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unallocated:
    """There is no allocation within the capacity where that is proved; otherwise none was found.

    No allocation has a smaller peak than `bound_nbytes`.
    """

    is_proved: bool
    bound_nbytes: int
    nodes: int
