"""Consecutive operations of an order, as the searches see them: sets of operations are bits.

What ran before the window and what runs after it are fixed, so a buffer that is used before is live
from the window's begin, and one that is used after is live to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate
from operator import or_

from driver.memory.order.op_graph import OpGraph


@dataclass(frozen=True, slots=True)
class Part:
    """A buffer as far as a window uses it: by which operations, and whether others do as well."""

    nbytes: int
    users: int
    is_used_before: bool
    is_used_after: bool


@dataclass(frozen=True, slots=True)
class Use:
    """What an operation does to one buffer: it is the first that uses it if none of `others` ran
    before, and the last if all of them did.
    """

    others: int
    first_nbytes: int
    last_nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Operations 0, 1, ... of a window; a set of them is an integer with a bit for each.

    Attributes:
        waits_for: of each operation those of the window that it waits for.
        followers: of each operation those that wait for it.
        parts: the buffers that they use.
        uses: of each operation.
        begin_nbytes: live before the first of them.
        end_nbytes: live after the last of them.
    """

    waits_for: tuple[int, ...]
    followers: tuple[int, ...]
    parts: tuple[Part, ...]
    uses: tuple[tuple[Use, ...], ...]
    begin_nbytes: int
    end_nbytes: int

    def __len__(self) -> int:
        return len(self.waits_for)

    @property
    def all_ops(self) -> int:
        """The set of all operations."""
        return (1 << len(self)) - 1

    @property
    def ready_at_begin(self) -> int:
        """The set of operations that wait for none of the window."""
        return bits(op for op, before in enumerate(self.waits_for) if not before)

    def ready_after(self, done: int, op: int) -> int:
        """The set of operations that nothing holds up any more, now that `op` of `done` ran."""
        ready = 0
        for follower in members(self.followers[op]):
            if not self.waits_for[follower] & ~done:
                ready |= 1 << follower
        return ready

    def step(self, done: int, live: int, op: int) -> tuple[int, int]:
        """The live bytes while an operation runs, and after it, when `done` ran before it."""
        up = down = 0
        for use in self.uses[op]:
            ran = use.others & done
            if not ran:
                up += use.first_nbytes
            if ran == use.others:
                down += use.last_nbytes
        return live + up, live + up - down

    def live_nbytes(self, order: Iterable[int]) -> Iterator[int]:
        """The live bytes while each operation of the order runs."""
        done, live = 0, self.begin_nbytes
        for op in order:
            during, live = self.step(done, live, op)
            done |= 1 << op
            yield during

    def backwards(self) -> Window:
        """The same window with time running backwards: its orders, reversed, need the same."""
        return Window(
            waits_for=self.followers,
            followers=self.waits_for,
            parts=tuple(
                replace(p, is_used_before=p.is_used_after, is_used_after=p.is_used_before)
                for p in self.parts
            ),
            uses=tuple(
                tuple(
                    replace(use, first_nbytes=use.last_nbytes, last_nbytes=use.first_nbytes)
                    for use in uses
                )
                for uses in self.uses
            ),
            begin_nbytes=self.end_nbytes,
            end_nbytes=self.begin_nbytes,
        )


class GivenOrder:
    """The given order of a graph, of which windows are taken."""

    def __init__(self, graph: OpGraph) -> None:
        self._graph = graph
        count = len(graph.waits_for)
        self._used: list[list[int]] = [[] for _ in range(count)]
        self._spans: list[tuple[int, int]] = []
        change = [0] * (count + 1)
        for index, buffer in enumerate(graph.buffers):
            begin = 0 if buffer.from_begin else min(buffer.users) + 1
            end = count + 1 if buffer.to_end else max(buffer.users) + 1
            self._spans.append((begin, end))
            change[begin] += buffer.nbytes
            if end <= count:
                change[end] -= buffer.nbytes
            for op in buffer.users:
                self._used[op].append(index)
        self._live_nbytes = list(accumulate(change))

    def window(self, begin: int, end: int) -> Window:
        """The operations from one up to another; 0 in it is the one that is `begin` outside."""
        inside = range(begin, end)
        parts = {
            index: self._part(index, inside)
            for index in dict.fromkeys(i for op in inside for i in self._used[op])
        }
        waits_for = tuple(_local(inside, self._graph.waits_for[op]) for op in inside)
        return Window(
            waits_for=waits_for,
            followers=_turned(waits_for),
            parts=tuple(parts.values()),
            uses=tuple(
                tuple(_use(parts[index], 1 << at) for index in self._used[op])
                for at, op in enumerate(inside)
            ),
            begin_nbytes=self._live_nbytes[begin],
            end_nbytes=self._live_nbytes[end],
        )

    def _part(self, index: int, inside: range) -> Part:
        buffer, (begin, end) = self._graph.buffers[index], self._spans[index]
        users = _local(inside, buffer.users)
        return Part(buffer.nbytes, users, begin <= inside.start, end > inside.stop)


def members(ops: int) -> Iterator[int]:
    """The operations of a set, the first one first."""
    while ops:
        lowest = ops & -ops
        yield lowest.bit_length() - 1
        ops ^= lowest


def bits(ops: Iterable[int]) -> int:
    """The set of operations."""
    return reduce(or_, (1 << op for op in ops), 0)


def _local(inside: range, ops: Iterable[int]) -> int:
    return bits(op - inside.start for op in ops if op in inside)


def _use(part: Part, op: int) -> Use:
    return Use(
        part.users ^ op,
        0 if part.is_used_before else part.nbytes,
        0 if part.is_used_after else part.nbytes,
    )


def _turned(waits_for: Sequence[int]) -> tuple[int, ...]:
    found = [0] * len(waits_for)
    for op, before in enumerate(waits_for):
        for other in members(before):
            found[other] |= 1 << op
    return tuple(found)
