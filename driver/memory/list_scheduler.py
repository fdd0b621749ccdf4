"""The order of operations, and how long each buffer must live in it.

List scheduling with the given order as priority: an operation runs as soon as everything that it
reads was written. A valid given order is therefore kept as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driver.memory.problem import Buffer, Op, Problem


@dataclass(frozen=True, slots=True)
class LiveRange:
    """The positions in the order from which and up to which, both included, a buffer is needed."""

    buffer: Buffer
    first_op: int
    last_op: int


def list_order(problem: Problem) -> tuple[Op, ...]:
    """The operations, each after those that write what it reads, otherwise in the given order.

    Raises:
        ValueError: names that are not unique or unknown, a buffer read that nobody writes, or
            operations that wait for one another.
    """
    _check_names(problem)
    writers: dict[str, set[int]] = {b.name: set() for b in problem.buffers}
    for at, op in enumerate(problem.ops):
        for name in op.writes:
            writers[name].add(at)
    _check_reads(problem, writers)
    waiting = {
        at: {w for name in op.reads for w in writers[name]} - {at}
        for at, op in enumerate(problem.ops)
    }
    order: list[int] = []
    while waiting:
        ready = next((at for at, before in waiting.items() if not before), None)
        if ready is None:
            stuck = ", ".join(problem.ops[at].name for at in waiting)
            raise ValueError(f"operations wait for one another: {stuck}")
        order.append(ready)
        del waiting[ready]
        for before in waiting.values():
            before.discard(ready)
    return tuple(problem.ops[at] for at in order)


def live_ranges(problem: Problem, order: Sequence[Op]) -> tuple[LiveRange, ...]:
    """When each buffer is needed, in the order of the problem's buffers.

    From its first writer (or the begin) to its last reader or writer (or the end). A buffer that no
    operation touches is needed nowhere unless it is needed before or after; then at that end.
    """
    touched: dict[str, list[int]] = {b.name: [] for b in problem.buffers}
    for at, op in enumerate(order):
        for name in (*op.reads, *op.writes):
            touched[name].append(at)
    end = max(len(order) - 1, 0)
    ranges = []
    for buffer in problem.buffers:
        times = touched[buffer.name]
        times = times + [0] * buffer.needed_before + [end] * buffer.needed_after
        if times:
            ranges.append(LiveRange(buffer, min(times), max(times)))
    return tuple(ranges)


def _check_names(problem: Problem) -> None:
    buffers = [b.name for b in problem.buffers]
    ops = [op.name for op in problem.ops]
    for kind, names in (("buffer", buffers), ("operation", ops)):
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"{kind} names are not unique: {', '.join(twice)}")
    known = set(buffers)
    for op in problem.ops:
        for name in (*op.reads, *op.writes):
            if name not in known:
                raise ValueError(f"operation {op.name} uses the unknown buffer {name}")


def _check_reads(problem: Problem, writers: dict[str, set[int]]) -> None:
    filled = {b.name for b in problem.buffers if b.needed_before}
    for op in problem.ops:
        for name in op.reads:
            if name not in filled and not writers[name]:
                raise ValueError(f"operation {op.name} reads {name}, which nobody writes")
