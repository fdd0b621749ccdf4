"""What no plan can beat: lower bounds that are printed next to every result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driver.memory.list_scheduler import LiveRange, list_order, live_ranges
from driver.memory.problem import Problem


@dataclass(frozen=True, slots=True)
class Demand:
    """The bytes that must be in memory at once, and the position in the order at which."""

    nbytes: int
    at_op: int


def peak_demand(problem: Problem, ranges: Sequence[LiveRange]) -> Demand:
    """The largest sum of live bytes over time, padded as much as alignment surely costs.

    All but the topmost of the buffers alive at one time are followed by another one, so they take
    whole multiples of the smallest alignment; the topmost may be the one with most padding.
    """
    step = min((problem.alignment_of(r.buffer) for r in ranges), default=1)
    worst = Demand(0, 0)
    for at in sorted({r.first_op for r in ranges}):
        sizes = [r.buffer.nbytes for r in ranges if r.first_op <= at <= r.last_op]
        pads = [-size % step for size in sizes if size]
        nbytes = sum(sizes) + sum(pads) - max(pads, default=0)
        if nbytes > worst.nbytes:
            worst = Demand(nbytes, at)
    return worst


def peak_bound_nbytes(problem: Problem) -> int:
    """No plan in list order has a smaller peak than this."""
    return peak_demand(problem, live_ranges(problem, list_order(problem))).nbytes
