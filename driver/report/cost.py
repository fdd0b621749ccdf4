"""What a kernel takes by the clock of its device: cycles, or seconds, which are shown as us.

A run knows one of the two; they are never compared or added, and 0 is neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

_Number = TypeVar("_Number", int, float)


def cost(cycles: int | None, seconds: float | None) -> float | None:
    """The one that is known, to be compared with others of the same run."""
    return float(cycles) if cycles else seconds or None


def gain(before: float | None, after: float | None) -> float | None:
    """How many times faster it has become; None where one of the two is not known."""
    return before / after if before and after else None


def total(rows: Iterable[tuple[int, _Number | None]]) -> _Number | None:
    """Sum of count * cost; None when one is unknown, or there are none."""
    result: _Number | None = None
    for count, each in rows:
        if each is None:
            return None
        result = count * each if result is None else result + count * each
    return result


def microseconds(seconds: float) -> str:
    """0.0123456 -> 12 345.6 us."""
    return f"{1e6 * seconds:,.1f} us".replace(",", " ")
