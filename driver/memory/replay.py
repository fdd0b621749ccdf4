"""A plan with other durations: what its order on engines and its addresses are worth then.

Operations whose latencies were measured take one of their samples in each run. Engines keep the
order of the plan, addresses stay, and everything begins as soon as it may.
"""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from driver.memory.barriers import Barriers
from driver.memory.dependencies import parts
from driver.memory.plan import Plan, PlannedOp, Reason
from driver.memory.problem import Problem
from driver.memory.waits import Event, events_of, with_reuse_edges


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The makespans of many runs, and how often an operation was on the chain that decided one.

    Attributes:
        p10_ticks, median_ticks, p90_ticks: of the makespan.
        criticality: (operation, share of runs), the most critical first; those that never were are
            left out.
    """

    runs: int
    p10_ticks: int
    median_ticks: int
    p90_ticks: int
    criticality: tuple[tuple[str, float], ...]


def sampled_ticks(problem: Problem, runs: int, seed: int) -> Iterator[dict[str, int]]:
    """For each run the ticks of every operation: one of its samples, or its duration."""
    rng = random.Random(seed)
    for _ in range(runs):
        yield {op.name: rng.choice(op.samples) if op.samples else op.ticks for op in problem.ops}


def replay(problem: Problem, plan: Plan, draws: Sequence[Mapping[str, int]]) -> Replay:
    """What becomes of a valid plan's makespan.

    Args:
        problem: whose plan it is.
        plan: it.
        draws: for each run the ticks of every operation, as `sampled_ticks` gives; one at least.
    """
    events = events_of(problem, plan)
    makespans: list[int] = []
    critical: Counter[str] = Counter()
    for ticks in draws:
        begins, ends = _times(events, ticks, problem.barriers)
        makespans.append(max(ends, default=0))
        critical.update(_critical(events, begins, ends))
    makespans.sort()
    most = sorted(critical.items(), key=lambda each: (-each[1], each[0]))
    return Replay(
        runs=len(makespans),
        p10_ticks=makespans[len(makespans) // 10],
        median_ticks=statistics.median_low(makespans),
        p90_ticks=makespans[min(len(makespans) * 9 // 10, len(makespans) - 1)],
        criticality=tuple((name, count / len(makespans)) for name, count in most),
    )


def replayed(problem: Problem, plan: Plan, ticks: Mapping[str, int]) -> Plan:
    """The plan as one run with other durations would be; valid for a problem that has those."""
    events = events_of(problem, plan)
    begins, ends = _times(events, ticks, problem.barriers)
    makespan = max(ends, default=0)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for event, begin, end in zip(events, begins, ends, strict=True):
        for use in event.uses:
            first[use.residency] = min(begin, first.get(use.residency, begin))
            until = begin if use.takes else end
            last[use.residency] = max(until, last.get(use.residency, until))
    residencies = []
    place = parts(problem)
    kept = {place[buffer.name].root for buffer in problem.buffers if buffer.needed_after}
    for at, stay in enumerate(plan.residencies):
        lasts = (
            stay.buffer in kept
            and stay.end == plan.makespan_ticks
            and stay.reason is not Reason.SAVED
        )
        begin = 0 if stay.reason is Reason.PRESENT else first[at]
        residencies.append(replace(stay, begin=begin, end=makespan if lasts else last[at]))
    timed = sorted(
        (
            (replace(event.what, begin=begin, end=end), event.is_repeat)
            for event, begin, end in zip(events, begins, ends, strict=True)
        ),
        key=lambda each: (each[0].begin, each[0].end),
    )
    ops = [(each, is_repeat) for each, is_repeat in timed if isinstance(each, PlannedOp)]
    again = replace(
        plan,
        ops=tuple(each for each, is_repeat in ops if not is_repeat),
        repeats=tuple(each for each, is_repeat in ops if is_repeat),
        transfers=tuple(each for each, _ in timed if not isinstance(each, PlannedOp)),
        residencies=tuple(residencies),
        makespan_ticks=makespan,
        bounds=(),
        method=f"{plan.method}; replayed",
    )
    return with_reuse_edges(problem, again)


def _times(
    events: Sequence[Event], ticks: Mapping[str, int], barriers: int
) -> tuple[list[int], list[int]]:
    """Begins and ends of all events."""
    begins: list[int] = []
    ends: list[int] = []
    free = Barriers(barriers)
    for event in events:
        what = event.what
        begin = max((ends[each] for each in event.ends), default=0)
        begin = max([begin, *(begins[each] for each in event.begins)])
        takes = ticks[what.op] if isinstance(what, PlannedOp) else what.end - what.begin
        begin = free.earliest(begin, takes)
        free.hold(begin, begin + takes)
        begins.append(begin)
        ends.append(begin + takes)
    return begins, ends


def _critical(events: Sequence[Event], begins: list[int], ends: list[int]) -> Iterator[str]:
    """Operations back from what ends last, each begun as soon as the one before it let it."""
    at = max(range(len(events)), key=ends.__getitem__, default=-1)
    while at >= 0:
        event = events[at]
        if isinstance(event.what, PlannedOp):
            yield event.what.op
        chain = [each for each in event.ends if ends[each] == begins[at]]
        chain += [each for each in event.begins if begins[each] == begins[at]]
        at = chain[0] if begins[at] and chain else -1
