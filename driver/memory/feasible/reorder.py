"""The order of loads for a second pass: each as late as its computation allows, and no later.

npu_compiler simulates the first pass, gives each load the ideal time that ends as its computation
begins, shifts loads that would collide to the left, and puts loads at most two computations ahead
of their user into the order (`prefetch_data_ops.cpp`).
"""

from __future__ import annotations

from typing import Final

from driver.memory.feasible.graph import Graph, StepKind

_MOST_AHEAD: Final = 2


def reordered(graph: Graph) -> tuple[int, ...]:
    """All steps, with each load before the computation beside which it is to run."""
    computes = sorted(
        (at for at, kind in enumerate(graph.kinds) if kind is StepKind.COMPUTE),
        key=graph.rank.__getitem__,
    )
    starts = _starts(graph, computes)
    place: dict[int, tuple[int, int, int]] = {
        at: (number, 1, 0) for number, at in enumerate(computes)
    }
    for at, begin in _ideal_begins(graph, starts).items():
        user = graph.levels[at]
        beside = max(0, user - _MOST_AHEAD)
        while beside < user and starts[computes[beside]] < begin:
            beside += 1
        place[at] = beside, 0, begin
    last = (len(computes), 1, 0)
    return graph.instance.arranged(lambda at: (place.get(at, last), graph.rank[at]))


def _starts(graph: Graph, computes: list[int]) -> dict[int, int]:
    """When computations would begin if no load were waited for."""
    free: dict[int, int] = {}
    ends: dict[int, int] = {}
    starts = {}
    for at in computes:
        its = graph.instance.steps[at]
        operands = [ends[each] for each in its.before if each in ends]
        starts[at] = max(free.get(its.engine, 0), *operands, 0)
        ends[at] = free[its.engine] = starts[at] + its.ticks
    return starts


def _ideal_begins(graph: Graph, starts: dict[int, int]) -> dict[int, int]:
    """The latest begins of loads at which no computation waits, on engines that load in turn."""
    loads = [at for at, kind in enumerate(graph.kinds) if kind is StepKind.DATA]
    wanted = {
        at: min((starts[each] for each in graph.consumers[at] if each in starts), default=0)
        for at in loads
    }
    free: dict[int, int] = {}
    begins = {}
    for at in sorted(loads, key=lambda at: (wanted[at], graph.rank[at]), reverse=True):
        its = graph.instance.steps[at]
        end = min(wanted[at], free.get(its.engine, wanted[at]))
        begins[at] = free[its.engine] = end - its.ticks
    return begins
