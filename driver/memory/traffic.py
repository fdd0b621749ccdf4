"""Bytes that every plan moves besides what must be, as a memory cannot hold all that comes to use.

While a step runs, what others wrote before it and read after it exists: in the memory, beside what
the step uses, or in the backing memory. What is there then comes back later, and was saved before
if the backing memory did not have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from driver.memory.dependencies import parts
from driver.memory.instance import Instance
from driver.memory.problem import Problem

_MOST_STEPS: Final = 300
"""Steps during which it is looked; of more, some evenly apart."""


def extra_nbytes(
    problem: Problem, instance: Instance, waits: Sequence[frozenset[int]], memory: int
) -> int:
    """The most that any one step makes others leave."""
    capacity = instance.capacities[memory]
    if not capacity:
        return 0
    before, after = _closed(instance, waits)
    lives = _lives(problem, instance, memory)
    every = max(1, len(instance.steps) // _MOST_STEPS)
    return max(
        (
            _of_step(instance, at, memory, lives, (before[at], after[at] | 1 << at))
            for at in range(0, len(instance.steps), every)
        ),
        default=0,
    )


def _closed(
    instance: Instance, waits: Sequence[frozenset[int]]
) -> tuple[Sequence[int], Sequence[int]]:
    """Of each step, as bits, all that have ended before it begins, and all that begin after it."""
    before, after = [0] * len(waits), [0] * len(waits)
    order = instance.arranged(lambda at: at)
    for at in order:
        for each in waits[at]:
            before[at] |= before[each] | 1 << each
    for at in reversed(order):
        for each in waits[at]:
            after[each] |= after[at] | 1 << at
    return before, after


def _lives(problem: Problem, instance: Instance, memory: int) -> list[tuple[int, int, int]]:
    """(buffer, its writer as bits, readers) of those that one step writes or none, and that are
    never made again.
    """
    place = parts(problem)
    number = {root: at for at, root in enumerate(dict.fromkeys(p.root for p in place.values()))}
    writers: dict[int, int] = dict.fromkeys(range(len(instance.buffers)), 0)
    for at, op in enumerate(problem.ops):
        for name in op.writes:
            writers[number[place[name].root]] |= 1 << at
    for at in range(instance.operations, len(instance.steps)):
        writers[instance.steps[at].uses[0]] |= 1 << at
    found = []
    for at, buffer in enumerate(instance.buffers):
        readers = sum(1 << user for user in instance.users[at]) & ~writers[at]
        is_written = writers[at].bit_count() == 1 or (buffer.is_present and not writers[at])
        if buffer.memory == memory and is_written and readers and buffer.remade_by is None:
            found.append((at, writers[at], readers))
    return found


def _of_step(
    instance: Instance,
    at: int,
    memory: int,
    lives: Sequence[tuple[int, int, int]],
    times: tuple[int, int],
) -> int:
    """What leaves while a step runs, at least: first of all what needs not be saved."""
    before, after = times
    step = instance.steps[at]
    buffers = instance.buffers
    live = {b for b, writer, readers in lives if not writer & ~before and readers & after}
    taking = {result for _, result in step.in_place}
    other = {b for b in step.uses if buffers[b].memory == memory} - live - taking
    over = sum(buffers[b].nbytes for b in live | other) - instance.capacities[memory]
    if over <= 0:
        return 0
    ways = sorted(
        (2 if _is_changed(instance, b) else 1, buffers[b].nbytes)
        for b in live
        if b not in step.uses and buffers[b].save is not None
    )
    moved = 0
    for times_moved, nbytes in ways:
        moved += times_moved * min(nbytes, max(over, 0))
        over -= nbytes
    return moved


def _is_changed(instance: Instance, buffer: int) -> bool:
    """Whether the backing memory has it only once it was saved."""
    return instance.buffers[buffer].is_present or any(
        buffer in instance.steps[user].changes for user in instance.users[buffer]
    )
