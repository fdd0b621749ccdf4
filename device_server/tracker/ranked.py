"""Things in the order of a rank that changes now and then, without sorting them anew."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

_Thing = TypeVar("_Thing")
_Found = TypeVar("_Found")


class Ranked(Generic[_Thing]):
    """Things of which lower ranks come first; one whose rank is None is let go of.

    Ranks are looked at when their turn has come, so one that has risen is noticed, and one that has
    fallen only then.
    """

    def __init__(
        self, things: Iterable[_Thing], rank: Callable[[_Thing], tuple[float, ...] | None]
    ) -> None:
        self._rank = rank
        self._heap = [
            (at, number, thing)
            for number, thing in enumerate(things)
            if (at := rank(thing)) is not None
        ]
        heapq.heapify(self._heap)

    def first(self) -> _Thing | None:
        """The first one."""
        return self.find(lambda thing: thing)

    def find(self, judge: Callable[[_Thing], _Found | bool]) -> _Found | None:
        """What `judge` finds at the first thing at which it finds something.

        It says True where it is worth to look on, and False where it is not.
        """
        passed = []
        found: _Found | bool | None = None
        while (place := self._next()) is not None:
            found = judge(place[2])
            if found is not True:
                break
            passed.append(heapq.heappop(self._heap))
        for place in passed:
            heapq.heappush(self._heap, place)
        return None if isinstance(found, bool) else found

    def _next(self) -> tuple[tuple[float, ...], int, _Thing] | None:
        while self._heap:
            at, number, thing = self._heap[0]
            now = self._rank(thing)
            if now is None:
                heapq.heappop(self._heap)
            elif now == at:
                return self._heap[0]
            else:
                heapq.heapreplace(self._heap, (now, number, thing))
        return None
