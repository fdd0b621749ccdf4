"""What a kernel takes by the clock of its device: cycles, or seconds, which are shown as us.

A run knows one of the two; they are never compared or added, and 0 is neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a kernel takes: one of the two; neither where it is not known."""

    cycles: int | None = None
    seconds: float | None = None

    @property
    def number(self) -> float | None:
        """To be compared with others of the same run."""
        return float(self.cycles) if self.cycles else self.seconds or None


NOT_KNOWN: Final = Cost()


def gain(before: float | None, after: float | None) -> float | None:
    """How many times faster it has become; None where one of the two is not known."""
    return before / after if before and after else None


def total(rows: Iterable[tuple[int, Cost]]) -> Cost:
    """Sum of count * cost; not known when one is not, or there are none."""
    each = list(rows)
    return Cost(
        _sum((count, cost.cycles) for count, cost in each),
        _sum((count, cost.seconds) for count, cost in each),
    )


def _sum(rows: Iterable[tuple[int, _Number | None]]) -> _Number | None:
    result: _Number | None = None
    for count, each in rows:
        if each is None:
            return None
        result = count * each if result is None else result + count * each
    return result


def microseconds(seconds: float) -> str:
    """0.0123456 -> 12 345.6 us."""
    return f"{1e6 * seconds:,.1f} us".replace(",", " ")
