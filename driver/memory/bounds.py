"""What no plan can beat: lower bounds that are printed next to every result.

They hold for every plan that `validate` calls good: one that saves, reads, runs again and takes
places as it likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from driver.memory.instance import Instance
from driver.memory.plan import Bound
from driver.memory.problem import Problem
from driver.memory.traffic import extra_nbytes

_MOST_WINDOWS: Final = 64
"""Begins of windows that are looked at of an engine."""
_MOST_PATHS: Final = 300
"""Steps of which the paths between all are looked at."""


def bounds_of(problem: Problem, instance: Instance) -> Iterator[Bound]:
    """Of the makespan: the longest path, the work of each engine, and of all by the barriers, bytes
    over time in each memory; of the bytes that are moved besides what must be: of each memory.
    """
    times = path_times(instance)
    longest = max(
        (h + s.ticks + t for h, s, t in zip(times.head, instance.steps, times.tail, strict=True)),
        default=0,
    )
    yield Bound(name="longest path", ticks=longest)
    for number, engine in enumerate(problem.engines):
        if ticks := _work(instance, times, number):
            yield Bound(name=f"work of {engine.name}", ticks=ticks)
    if problem.barriers:
        work = sum(step.ticks for step in instance.steps)
        yield Bound(name="work by barriers", ticks=-(-work // problem.barriers))
    for number, memory in enumerate(problem.memories):
        if ticks := _nbytes_by_ticks(instance, times, number):
            yield Bound(name=f"bytes by ticks of {memory.name}", ticks=ticks)
        if nbytes := extra_nbytes(problem, instance, times.waits, number):
            yield Bound(name=f"traffic of {memory.name}", extra_nbytes=nbytes)


@dataclass(frozen=True, slots=True)
class PathTimes:
    """Of each step the steps that have ended before it begins, when it begins at the earliest, and
    how long it takes at least from its end to that of all.
    """

    waits: Sequence[frozenset[int]]
    head: Sequence[int]
    tail: Sequence[int]


def path_times(instance: Instance) -> PathTimes:
    """From who waits for whom; one instance that keeps an order makes its steps wait as well."""
    steps = instance.steps
    waits = [
        frozenset((*step.before, *(step.behind if instance.instances[step.engine] == 1 else ())))
        for step in steps
    ]
    head, tail = [0] * len(steps), [0] * len(steps)
    order = instance.arranged(lambda at: at)
    for at in order:
        head[at] = max((head[each] + steps[each].ticks for each in waits[at]), default=0)
    for at in reversed(order):
        for each in waits[at]:
            tail[each] = max(tail[each], steps[at].ticks + tail[at])
    return PathTimes(waits, head, tail)


def _work(instance: Instance, times: PathTimes, engine: int) -> int:
    """Steps that begin no sooner than some tick, and end no later than so many before the end, have
    the instances of an engine in between.
    """
    steps, instances = instance.steps, instance.instances[engine]
    mine = sorted(
        (at for at, step in enumerate(steps) if step.engine == engine),
        key=lambda at: -times.tail[at],
    )
    begins = sorted({times.head[at] for at in mine})
    best = 0
    for begin in begins[:: max(1, len(begins) // _MOST_WINDOWS)]:
        work = 0
        for at in mine:
            if times.head[at] < begin:
                continue
            work += steps[at].ticks * (instances if steps[at].takes_all else 1)
            best = max(best, begin + -(-work // instances) + times.tail[at])
    return best


def _nbytes_by_ticks(instance: Instance, times: PathTimes, memory: int) -> int:
    """The bytes of a memory are enough, over the makespan, for all buffers as long as they are
    there at least.
    """
    capacity = instance.capacities[memory]
    if not capacity:
        return 0
    area = sum(
        buffer.nbytes * _least_ticks(instance, times, number)
        for number, buffer in enumerate(instance.buffers)
        if buffer.memory == memory
    )
    return -(-area // capacity)


def _least_ticks(instance: Instance, times: PathTimes, number: int) -> int:
    """How long a buffer is in memory at least: as its users run, those of an engine's instance one
    after the other. Those do not count that may run in its operand's place.
    """
    buffer = instance.buffers[number]
    by_engine: dict[int, int] = {}
    for user in instance.users[number]:
        step = instance.steps[user]
        if all(result != number for _, result in step.in_place):
            by_engine[step.engine] = by_engine.get(step.engine, 0) + step.ticks
    least = max((-(-t // instance.instances[e]) for e, t in by_engine.items()), default=0)
    writers = [at for at in instance.users[number] if number in instance.steps[at].changes]
    stays = buffer.save is None and buffer.remade_by is None and len(writers) == 1
    if not stays or len(instance.steps) > _MOST_PATHS:
        return least
    (writer,) = writers
    paths = _longest_paths(instance, times, writer)
    longest = max(paths[at] for at in instance.users[number])
    if buffer.is_kept:
        longest = max(longest, instance.steps[writer].ticks + times.tail[writer])
    takes = any(result == number for _, result in instance.steps[writer].in_place)
    return max(least, longest - (instance.steps[writer].ticks if takes else 0))


def _longest_paths(instance: Instance, times: PathTimes, begin: int) -> list[int]:
    """Ticks from the begin of a step to the end of each that waits for it; 0 for the others."""
    ticks = [0] * len(instance.steps)
    ticks[begin] = instance.steps[begin].ticks
    for at in instance.arranged(lambda at: at):
        before = max((ticks[each] for each in times.waits[at]), default=0)
        if before and at != begin:
            ticks[at] = before + instance.steps[at].ticks
    return ticks


def live_nbytes(spans: Iterable[tuple[int, int, int]], alignment: int = 1) -> int:
    """The most bytes at once of (begin, end, nbytes), padded as much as alignment surely costs.

    All but the topmost of those alive at one time are followed by another one, so they take whole
    multiples of the alignment; the topmost may be the one with most padding.
    """
    rows = [(begin, end, nbytes) for begin, end, nbytes in spans if nbytes and begin < end]
    events = [(begin, 1, nbytes) for begin, _, nbytes in rows]
    events += [(end, 0, nbytes) for _, end, nbytes in rows]
    live = worst = 0
    pads: dict[int, int] = {}
    for _, comes, nbytes in sorted(events):
        pad = -nbytes % alignment
        live += (nbytes + pad) * (1 if comes else -1)
        pads[pad] = pads.get(pad, 0) + (1 if comes else -1)
        if comes:
            most = max(each for each, count in pads.items() if count)
            worst = max(worst, live - most)
    return worst
