"""Which of many things have run out, when most are put off again and again before they do."""

from __future__ import annotations

import heapq
import itertools
from typing import Final, Generic, Protocol, TypeVar

MOST_GONE: Final = 1024
"""Things that are of interest no more, beside as many as there are others."""


class Lapsing(Protocol):
    """Something that is good `until` a time; what is `gone` is no longer of interest."""

    until: float
    gone: bool


_Thing = TypeVar("_Thing", bound=Lapsing)


class Deadlines(Generic[_Thing]):
    """Things in about the order in which they run out.

    Putting one off costs nothing: its place in the order is looked at when its old time has come.
    """

    def __init__(self) -> None:
        self._order: list[tuple[float, int, _Thing]] = []
        self._numbers = itertools.count()
        self._sweep_at = MOST_GONE

    def __len__(self) -> int:
        """Things that are watched, those that are gone included."""
        return len(self._order)

    def add(self, thing: _Thing) -> None:
        """Watch one thing from now on."""
        heapq.heappush(self._order, (thing.until, next(self._numbers), thing))
        if len(self._order) > self._sweep_at:
            self._order = [place for place in self._order if not place[2].gone]
            heapq.heapify(self._order)
            self._sweep_at = 2 * len(self._order) + MOST_GONE

    def over(self, now: float) -> list[_Thing]:
        """Those that have run out, each told once."""
        found: list[_Thing] = []
        while self._order and self._order[0][0] <= now:
            _, _, thing = heapq.heappop(self._order)
            if thing.gone:
                continue
            if thing.until <= now:
                found.append(thing)
            else:
                self.add(thing)
        return found
