"""The order of operations with the least peak of live bytes, or the best that was found.

An order falls into windows that no order can mix: whatever is before such a border runs before
everything behind it. Each window is searched on its own, the one with the highest peak first, and
only as far as it matters for the whole. Where the least peak of a window takes too many states, the
same search finds an order within a somewhat higher one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from driver.memory.order.downset_search import Effort, SearchResult, best_order
from driver.memory.order.fixed_points import fixed_windows, least_peak_nbytes
from driver.memory.order.op_graph import OpGraph
from driver.memory.order.window import GivenOrder, Window

MOST_STATES: Final = 200_000
"""Enough for the randomly wired networks of SERENITY; about three seconds."""

_EXACT_SHARES: Final = (64, 16, 4)
"""Exact searches may visit these parts of the states that are left, one after the other: most
windows take few states, and those that take more have lost little.
"""

_NARROW_SHARE: Final = 16
_NARROW_ENOUGH: Final = 200
"""Where no order was found that is half a percent better, the search ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakOrder:
    """An order and its peak of live bytes.

    Attributes:
        order: the operations by number.
        peak_nbytes: the most bytes that are live at any time.
        bound_nbytes: no order has a lower peak.
        given_nbytes: the peak of the given order.
        states: the states that were visited for it.
    """

    order: tuple[int, ...]
    peak_nbytes: int
    bound_nbytes: int
    given_nbytes: int
    states: int

    @property
    def is_optimal(self) -> bool:
        """Whether no order has a lower peak, for certain."""
        return self.peak_nbytes <= self.bound_nbytes


def least_peak_order(
    graph: OpGraph,
    *,
    most_states: int = MOST_STATES,
    is_over: Callable[[], bool] = lambda: False,
) -> PeakOrder:
    """The order with the least peak, or the best one found; the given order if none is better.

    Args:
        graph: the operations in their given order.
        most_states: the effort, which decides what is found: the same on every machine.
        is_over: asked every few milliseconds; once it is, the search ends with what it has.
    """
    return _Improver(graph, Effort(most_states, is_over)).result()


class _Improver:
    """An order that becomes better window by window."""

    def __init__(self, graph: OpGraph, effort: Effort) -> None:
        self._graph = graph
        self._effort = effort
        self._order = list(range(len(graph.waits_for)))
        self._given = GivenOrder(graph)

    def result(self) -> PeakOrder:
        """The order once nothing more can be done about its peak."""
        live = list(self._graph.live_nbytes(self._order))
        windows = [(max(live[begin:end]), begin, end) for begin, end in fixed_windows(self._graph)]
        goal = bound = 0
        for given, begin, end in sorted(windows, key=lambda window: (-window[0], window[1])):
            if given > goal:
                reached, at_least = self._improve(begin, end, goal, given)
                goal, bound = max(goal, reached), max(bound, at_least)
        return PeakOrder(
            order=tuple(self._order),
            peak_nbytes=self._graph.peak_nbytes(self._order),
            bound_nbytes=bound,
            given_nbytes=max(live, default=0),
            states=self._effort.spent,
        )

    def _improve(self, begin: int, end: int, goal: int, given: int) -> tuple[int, int]:
        """Lowers the peak of a window to `goal`, or as far as possible: that peak, and a bound."""
        window = self._given.window(begin, end)
        bound, reached = least_peak_nbytes(window), given
        for share in _EXACT_SHARES:
            for search in _SEARCHES:
                floor = max(goal, bound)
                if reached <= floor:
                    return reached, bound
                found = search(window, floor, reached, self._effort.share(share))
                if found.bound_nbytes > floor:
                    bound = found.bound_nbytes
                if found.order is not None:
                    reached = self._take(begin, window, found.order)
        return self._narrow(begin, window, max(goal, bound), reached), bound

    def _narrow(self, begin: int, window: Window, low: int, reached: int) -> int:
        """Lowers the peak of a window where the least one was not found in time; the peak.

        An order that stays within a peak above the least one is found far sooner than the least, so
        what lies between the peak that was reached and one that was not is halved, again and again.
        """
        states = self._effort.share(_NARROW_SHARE).states
        while reached - low > max(1, reached // _NARROW_ENOUGH):
            middle = (low + reached) // 2
            for search in _SEARCHES:
                found = search(window, middle, reached, self._effort.part(states))
                if found.order is not None:
                    reached = self._take(begin, window, found.order)
                    break
            else:
                low = middle
        return reached

    def _take(self, begin: int, window: Window, order: tuple[int, ...]) -> int:
        """Has the operations of a window run in an order; the peak that they have then."""
        self._order[begin : begin + len(window)] = [begin + op for op in order]
        return max(window.live_nbytes(order))


def _backwards(window: Window, floor: int, ceiling: int, effort: Effort) -> SearchResult:
    found = best_order(window.backwards(), floor, ceiling, effort)
    return SearchResult(found.order and found.order[::-1], found.bound_nbytes)


_SEARCHES: Final = (_backwards, best_order)
"""Both directions of time: one of them often has a small part of the other's states."""
