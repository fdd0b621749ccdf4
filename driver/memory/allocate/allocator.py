"""The typed door of the compiled allocator: checks what it is given, and lets Ctrl-C through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tilefarm.errors import UserError

from driver.memory.allocate.interval import END, Allocation, Interval, Unallocated, flaw
from driver.memory.native.allocation import NOWHERE, Limits, Result, Rows, Status, search
from driver.memory.native.library import integers, interruptible

NODES: Final = 2**63
"""More nodes of the search than any clock allows."""

MOST_INTERVALS: Final = 20_000
"""Packing compares all pairs: these take some seconds."""
_AT_ONCE_NODES: Final = 1000
_AT_ONCE_INTERVALS: Final = 1000
"""What is called without a thread of its own: it takes less than some 20 ms, Ctrl-C waits so long.
Everyday graphs end here."""


def allocate(
    intervals: Sequence[Interval],
    *,
    capacity_nbytes: int | None = None,
    reserved: Sequence[tuple[int, int]] = (),
    smallest: bool = False,
    seconds: float = 10.0,
    nodes: int = NODES,
    seed: int = 0,
) -> Allocation | Unallocated:
    """Offsets with the smallest peak that was found; with a capacity, any within it.

    Packing in several orders comes first, the exact search where it misses the bound or the
    capacity. Same arguments, same answer, unless `seconds` end the search.

    Args:
        intervals: what to place; those that live at one moment share no byte.
        capacity_nbytes: where the memory ends; None: as much as it takes.
        reserved: (offset, nbytes) that nothing may use, ever.
        smallest: with a capacity, too, look for the smallest peak.
        seconds: of the clock at most.
        nodes: of the search at most.
        seed: of the orders that are tried.

    Raises:
        UserError: an interval or a range cannot be, or there are too many; says which and why.
        InfraError: the compiled library is not built.
    """
    problem = _rows(intervals, sorted(reserved))
    if capacity_nbytes is not None and capacity_nbytes < 0:
        raise UserError(f"a capacity of {capacity_nbytes} bytes", "0 or more")
    limits = Limits(
        NOWHERE if capacity_nbytes is None else min(capacity_nbytes, END),
        smallest,
        seed % 2**64,
        min(nodes, NODES),
        seconds,
    )
    result, offsets = _searched(problem, limits, len(intervals))
    if result.status == Status.FOUND:
        return Allocation(
            offsets=tuple(offsets),
            peak_nbytes=result.peak_nbytes,
            bound_nbytes=result.bound_nbytes,
            is_optimal=bool(result.is_optimal),
            nodes=result.nodes,
        )
    return Unallocated(
        is_proved=result.status == Status.INFEASIBLE,
        bound_nbytes=result.bound_nbytes,
        nodes=result.nodes,
    )


def _searched(problem: Rows, limits: Limits, buffers: int) -> tuple[Result, list[int]]:
    """At once where it is easy, otherwise on a thread, so that a signal finds this one waiting."""
    wanted = limits.nodes
    if buffers <= _AT_ONCE_INTERVALS:
        limits.nodes = min(wanted, _AT_ONCE_NODES)
        result, offsets = search(problem, limits, buffers)
        if result.nodes < limits.nodes or limits.nodes == wanted:
            return result, offsets
    limits.nodes = wanted

    def call(stop: Any) -> tuple[Result, list[int]]:
        limits.stop = stop
        return search(problem, limits, buffers)

    return interruptible(call)


def _rows(intervals: Sequence[Interval], reserved: Sequence[tuple[int, int]]) -> Rows:
    if len(intervals) > MOST_INTERVALS:
        raise UserError(
            f"{len(intervals)} buffers to allocate, {MOST_INTERVALS} at most",
            "fewer of them at a time",
        )
    first, lower, upper = [0], list[int](), list[int]()
    for number, interval in enumerate(intervals):
        if why := flaw(interval):
            raise UserError(
                f"buffer {number} of {len(intervals)}: {why}", "correct this buffer's numbers"
            )
        for begin, end in _joined(interval.lifetimes):
            lower.append(begin)
            upper.append(end)
        first.append(len(lower))
    ranges = list(_ranges(reserved))
    _check_total(intervals, ranges)
    fixed = [NOWHERE if each.fixed_offset is None else each.fixed_offset for each in intervals]
    return Rows(
        len(intervals),
        integers([each.nbytes for each in intervals]),
        integers([each.alignment for each in intervals]),
        integers(fixed),
        integers(first),
        integers(lower),
        integers(upper),
        len(ranges),
        integers([begin for begin, _ in ranges]),
        integers([end for _, end in ranges]),
    )


def _joined(lifetimes: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Lifetimes in the order of time, those that touch as one."""
    ordered = sorted(lifetimes)
    begin, end = ordered[0]
    for lower, upper in ordered[1:]:
        if lower > end:
            yield begin, end
            begin = lower
        end = upper
    yield begin, end


def _ranges(reserved: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """[begin, end) in the order of addresses, those that meet as one."""
    last: tuple[int, int] | None = None
    for offset, nbytes in reserved:
        if offset < 0 or nbytes < 0 or offset + nbytes > END:
            raise UserError(f"{nbytes} bytes at {offset} are reserved", "a range from 0 up")
        if not nbytes:
            continue
        if last and offset <= last[1]:
            last = last[0], max(last[1], offset + nbytes)
            continue
        if last:
            yield last
        last = offset, offset + nbytes
    if last:
        yield last


def _check_total(intervals: Sequence[Interval], ranges: Sequence[tuple[int, int]]) -> None:
    """No packing may end beyond 62 bits, however its buffers are aligned."""
    align = max((each.alignment for each in intervals), default=1)
    ends = [e.fixed_offset + e.nbytes for e in intervals if e.fixed_offset is not None]
    ends += [end for _, end in ranges]
    total = sum(each.nbytes for each in intervals) + max(ends, default=0)
    total += sum(end - begin for begin, end in ranges) + 2 * align * (len(intervals) + len(ends))
    if total > END:
        raise UserError(
            f"buffers and alignments add up to {total} bytes", "less than 2^62, in larger units"
        )
