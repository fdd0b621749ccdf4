"""The least peak of a window, by the sets of operations that can have run at some time.

A state is such a set (a downset of the graph); its live bytes do not depend on the order within it.
An order is a path from the empty set to all operations, and its peak the highest step on the path:
states are visited from the lowest peak up, so the first path that arrives is the best one, and no
state above the best peak is ever visited. That is the dynamic programming of SERENITY
(arXiv 2003.02369), whose budget adapts by itself here.

Two rules keep the states few. Both rest on live bytes being submodular: what an operation adds to
them is never more, and what it frees never less, once other operations ran. So where nothing goes
above the peak that is paid anyway, an operation that does not add to the live bytes may run at
once, and nothing else needs to be tried; likewise a chain of operations, each waiting for the one
before it, at whose end no more bytes are live than at its begin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from driver.memory.order.window import Window, members

_STATES_BETWEEN_LOOKS = 256
"""States that are visited between two looks at the clock: about a millisecond."""


@dataclass(slots=True)
class Effort:
    """What a search may still spend: states that it visits, while `is_over` allows it."""

    states: int
    is_over: Callable[[], bool]
    spent: int = 0
    whole: Effort | None = None

    def part(self, states: int) -> Effort:
        """So many of the states that are left, or all."""
        return Effort(min(states, self.states - self.spent), self.is_over, whole=self)

    def share(self, part: int) -> Effort:
        """The states that are left, divided."""
        return self.part((self.states - self.spent) // part)

    def spend(self) -> bool:
        """Whether one more state may be visited."""
        if self.spent >= self.states or (self.whole and not self.whole.spend()):
            return False
        self.spent += 1
        if not self.whole and self.spent % _STATES_BETWEEN_LOOKS == 0 and self.is_over():
            self.states = self.spent
        return True


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The order that was found, if one is below the ceiling, and what no order can be below."""

    order: tuple[int, ...] | None
    bound_nbytes: int


def best_order(window: Window, floor: int, ceiling: int, effort: Effort) -> SearchResult:
    """An order with the least peak, if that is below `ceiling`.

    Peaks up to `floor` are as good as `floor`. Where the effort ends early there is no order, and
    the bound is the peak below which every path was followed to its end.
    """
    paths = Paths(window, floor)
    heap = [(floor, 0, window.begin_nbytes, 0, window.ready_at_begin)]
    peak = floor
    while heap:
        key, _, live, done, ready = heappop(heap)
        if key > paths.peaks[done]:
            continue
        peak = max(peak, key)
        if not effort.spend():
            return SearchResult(None, peak)
        state = paths.run_free(State(done, live, ready), peak)
        if state is None:
            continue
        if state.done == window.all_ops:
            return SearchResult(paths.order_to(state.done), peak)
        for op in members(state.ready):
            during, after = window.step(state.done, state.live, op)
            key, child = max(peak, during), state.done | 1 << op
            if key < ceiling and paths.reach(child, op, key):
                following = state.ready ^ 1 << op | window.ready_after(child, op)
                heappush(heap, (key, -child.bit_count(), after, child, following))
    return SearchResult(None, ceiling)


class State(NamedTuple):
    """Operations that ran, the bytes that are live then, and the operations that may run next."""

    done: int
    live: int
    ready: int


class Paths:
    """The least peak by which each state was reached, and the operation that led there."""

    def __init__(self, window: Window, floor: int) -> None:
        self.peaks = {0: floor}
        self._window = window
        self._by: dict[int, int] = {}

    def reach(self, done: int, op: int, peak: int) -> bool:
        """Notes a way to a state; whether it is the best one so far."""
        known = self.peaks.get(done)
        if known is not None and known <= peak:
            return False
        self.peaks[done] = peak
        self._by[done] = op
        return True

    def order_to(self, done: int) -> tuple[int, ...]:
        """The operations on the best way to a state."""
        order = []
        while done:
            op = self._by[done]
            order.append(op)
            done ^= 1 << op
        return tuple(reversed(order))

    def run_free(self, state: State, peak: int) -> State | None:
        """The state after all that may run at once; None where that is a known state."""
        while (chain := self._free_chain(state, peak)) is not None:
            known = False
            for op, state in chain:
                known = not self.reach(state.done, op, peak)
            if known:
                return None
        return state

    def _free_chain(self, state: State, peak: int) -> list[tuple[int, State]] | None:
        """A chain within the peak after which no more bytes are live than before it."""
        for op in members(state.ready):
            chain: list[tuple[int, State]] = []
            at, link = state, op
            while True:
                during, live = self._window.step(at.done, at.live, link)
                if during > peak:
                    break
                done = at.done | 1 << link
                woken = self._window.ready_after(done, link)
                at = State(done, live, at.ready ^ 1 << link | woken)
                chain.append((link, at))
                if live <= state.live:
                    return chain
                if not woken:
                    break
                link = woken.bit_length() - 1
        return None
