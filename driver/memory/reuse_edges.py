"""Who waits for whom because they use the same bytes, one after the other.

Whoever uses bytes waits for all who used what lay there before; within one buffer a writer waits
for those that read or wrote its bytes before, and a reader for those that wrote them. What follows
from other edges is none. (npu_compiler's `control_edge_generator.hpp`, where parts of a buffer have
strides as well.)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

Edge = tuple[int, int]
"""(earlier, later) by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Somebody, by number, writes or reads bytes [begin, end)."""

    user: int
    begin: int
    end: int
    writes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupant:
    """Bytes [begin, end) of a memory that a buffer has for a while, and who uses them, in time."""

    begin: int
    end: int
    accesses: tuple[Access, ...] = ()


Meets = Callable[[int, int], bool]
"""Whether a user, and one that begins no sooner, run at once, so that neither waits."""


def conflicts(occupants: Iterable[Occupant], meets: Meets) -> list[Edge]:
    """Who has to wait for whom in one memory; more than `needed` leaves.

    Args:
        occupants: in time; those that share bytes are there one after the other.
        meets: of two users of one occupant, as those that write parts of it.
    """
    found: list[Edge] = []
    ground = _Ground()
    for new in occupants:
        if new.begin == new.end:
            continue
        mine = dict.fromkeys(access.user for access in new.accesses)
        for old in ground.take(new) if mine else ():
            earlier = dict.fromkeys(access.user for access in old.accesses)
            found += [(each, user) for user in mine for each in earlier if each != user]
        found += _within(new.accesses, meets)
    return found


def needed(edges: Iterable[Edge], given: Sequence[Collection[int]]) -> tuple[Edge, ...]:
    """The fewest edges from which all follow, together with what is given; sorted.

    Args:
        edges: to a higher number each.
        given: for each number others that it waits for anyway.
    """
    wanted: list[set[int]] = [set() for _ in given]
    for early, late in edges:
        wanted[late].add(early)
    found: list[Edge] = []
    before: list[int] = []  # as bits, all that each one waits for
    for late, others in enumerate(given):
        reached = 0
        for each in others:
            reached |= before[each] | 1 << each
        for early in sorted(wanted[late], reverse=True):
            if not reached >> early & 1:
                reached |= before[early] | 1 << early
                found.append((early, late))
        before.append(reached)
    return tuple(sorted(found))


@dataclass(slots=True)
class _Kept:
    """An access that others may have to wait for; none that begin after `until`: they wait for one
    that wrote all its bytes anew.
    """

    access: Access
    until: Access | None = None


def _within(accesses: Sequence[Access], meets: Meets) -> list[Edge]:
    found: list[Edge] = []
    readers: list[_Kept] = []
    writers: list[_Kept] = []
    for new in accesses:
        if any(each.until for each in writers):
            readers, writers = (
                [k for k in kept if k.until is None or meets(k.until.user, new.user)]
                for kept in (readers, writers)
            )
        for each in (*writers, *readers) if new.writes else writers:
            old = each.access
            is_shared = old.begin < new.end and new.begin < old.end
            if not is_shared or (old.user != new.user and meets(old.user, new.user)):
                continue
            if old.user != new.user:
                found.append((old.user, new.user))
            if new.writes and new.begin <= old.begin and old.end <= new.end:
                each.until = each.until or new
        (writers if new.writes else readers).append(_Kept(new))
    return found


class _Ground:
    """Who had each byte last."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._rows: list[tuple[int, int, Occupant]] = []

    def take(self, new: Occupant) -> list[Occupant]:
        """Those who had some of its bytes, which are its own now."""
        low = bisect_right(self._begins, new.begin)
        if low and self._rows[low - 1][1] > new.begin:
            low -= 1
        high = bisect_left(self._begins, new.end)
        old = self._rows[low:high]
        left = [(begin, new.begin, who) for begin, _, who in old[:1] if begin < new.begin]
        right = [(new.end, end, who) for _, end, who in old[-1:] if end > new.end]
        self._rows[low:high] = rows = [*left, (new.begin, new.end, new), *right]
        self._begins[low:high] = [begin for begin, *_ in rows]
        return [*{id(who): who for *_, who in old}.values()]
