"""Proves that reuse edges keep bytes safe: nobody is at them together with who changes them, where
edges hold, and every engine's instance does one thing after the other.

Shares no code with what finds the edges.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """An operation or a transfer, and the instances that it occupies."""

    name: str
    begin: int
    end: int
    instances: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Touch:
    """Something, by number, reads or writes addresses [low, high)."""

    number: int
    low: int
    high: int
    writes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A residency: its addresses, and what touches them."""

    memory: str
    low: int
    high: int
    begin: int
    touches: tuple[Touch, ...]


def unsafe(
    done: Sequence[Timed], edges: Iterable[tuple[int, int]], tenants: Iterable[Tenant]
) -> Iterator[str]:
    """What is wrong with the edges of a plan that is right otherwise."""
    ahead: list[list[int]] = [[] for _ in done]
    for early, late in edges:
        if not (0 <= early < len(done) and 0 <= late < len(done)):
            yield f"no operation or transfer for the edge {early}, {late}"
            return
        if done[early].end > done[late].begin:
            yield f"{done[late].name} is said to wait for {done[early].name}, and does not"
            return
        ahead[late].append(early)
    before = _all_before(done, ahead)
    for early, late in _pairs(done, tenants):
        if early != late and not before[late] >> early & 1:
            yield f"{done[early].name} and {done[late].name} use the same bytes, in no order"


def _all_before(done: Sequence[Timed], ahead: Sequence[Sequence[int]]) -> list[int]:
    """For each number, as bits, all that ends before it begins, by edges and turns."""
    before = [0] * len(done)
    last: dict[tuple[str, int], int] = {}
    for at in sorted(range(len(done)), key=lambda at: done[at].begin):
        mine = done[at].instances
        for each in (*ahead[at], *(last[i] for i in mine if i in last)):
            before[at] |= before[each] | 1 << each
        last.update(dict.fromkeys(mine, at))
    return before


def _pairs(done: Sequence[Timed], tenants: Iterable[Tenant]) -> Iterator[tuple[int, int]]:
    """Who has to be before whom: all of a tenant before all of the next, and within one those that
    touch the same bytes, if one of them writes.
    """
    lands: dict[str, _Land] = defaultdict(_Land)
    for new in sorted(tenants, key=lambda t: t.begin):
        if new.low == new.high or not new.touches:
            continue
        mine = {touch.number for touch in new.touches}
        for old in lands[new.memory].move_in(new):
            yield from ((each, one) for each in {t.number for t in old.touches} for one in mine)
        yield from _within(done, new)


def _within(done: Sequence[Timed], tenant: Tenant) -> Iterator[tuple[int, int]]:
    live: list[Touch] = []
    written: list[Touch] = []  # of those, the writes
    anew: Touch | None = None  # a write of all, behind which only those behind it count
    since = 0
    for new in sorted(tenant.touches, key=lambda touch: done[touch.number].begin):
        begin = done[new.number].begin
        if anew is not None and done[anew.number].end <= begin:
            live, anew = live[since:], None
            written = [old for old in live if old.writes]
        for old in live if new.writes else written:
            are_parts = old.writes and new.writes and done[old.number].end > begin
            is_shared = new.low < old.high and old.low < new.high
            if is_shared and not are_parts:
                yield old.number, new.number
        is_all = new.writes and (new.low, new.high) == (tenant.low, tenant.high)
        if (
            anew is None
            and is_all
            and all(t.number == new.number or done[t.number].end <= begin for t in live)
        ):
            anew, since = new, len(live)
        live.append(new)
        if new.writes:
            written.append(new)


class _Land:
    """Whose addresses are whose, last."""

    def __init__(self) -> None:
        self._lows: list[int] = []
        self._rows: list[tuple[int, int, Tenant]] = []

    def move_in(self, new: Tenant) -> Iterator[Tenant]:
        """Those whose addresses, or some of them, are a new tenant's from now on."""
        first = max(0, bisect_right(self._lows, new.low) - 1)
        last = bisect_left(self._lows, new.high)
        rows: list[tuple[int, int, Tenant]] = []
        for low, high, old in self._rows[first:last]:
            if high <= new.low:
                rows.append((low, high, old))
                continue
            yield old
            if low < new.low:
                rows.append((low, new.low, old))
            if new.high < high:
                rows.append((new.high, high, old))
        rows.append((new.low, new.high, new))
        rows.sort(key=lambda row: row[0])
        self._rows[first:last] = rows
        self._lows[first:last] = [low for low, *_ in rows]
