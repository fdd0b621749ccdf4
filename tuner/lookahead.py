"""How far asking runs ahead of telling: which ends a candidate is proposed with, and no others.

    asked   1 2 3 4 5 6 7 8 …        the 8th knows the ends of the first `known(7)` in order,
    ended   1 2 3 . 5 . 7            whatever else has ended by then: here it waits for the 4th

What is proposed follows from what is known. So it must not depend on who is fast today.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Lookahead:
    """At most so many are asked for and have not ended; half as many before anything is known.

    The fewer are out, the more is known about the next one; the more, the busier is the farm.
    """

    most: int

    def limit(self, ended: int) -> int:
        """How many may be asked for in all when so many of the first ones have ended."""
        return min(ended + self.most, 2 * ended + self._first)

    def known(self, asked: int) -> int:
        """How many of the first ones have to have ended before one more is asked for."""
        missing = asked + 1
        return max(0, missing - self.most, (missing - self._first + 1) // 2)

    @property
    def _first(self) -> int:
        return max(1, self.most // 2)


USUAL: Final = Lookahead(48)
"""Keeps a few workers and devices busy. The same everywhere, as the answer follows from it."""
