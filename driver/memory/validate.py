"""Proves a plan right or names what is wrong, from the definitions alone.

Shares no code with the planner, only the records: it replays the order and compares every pair of
placements, quadratic and obvious.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from driver.memory.problem import Placement, Plan, Problem


@dataclass(frozen=True, slots=True)
class PlanVerdict:
    """What was found: "good", or the name of the first rule that is broken, and by what."""

    name: str
    why: str = ""

    def __bool__(self) -> bool:
        return self.name == "good"


GOOD: Final = PlanVerdict("good")


def validate(problem: Problem, plan: Plan) -> PlanVerdict:
    """GOOD, or the first violation: order, content, placement, alignment, capacity, reserved,
    overlap, residency, or peak.
    """
    for rule in (_order, _content, _placement, _address, _overlap, _residency, _peak):
        for verdict in rule(problem, plan):
            return verdict
    return GOOD


def _order(problem: Problem, plan: Plan) -> Iterator[PlanVerdict]:
    if sorted(plan.order) != sorted(op.name for op in problem.ops):
        yield PlanVerdict("order", "the order is not the operations, each once")


def _content(problem: Problem, plan: Plan) -> Iterator[PlanVerdict]:
    """Replays the order: everything that is read was written completely before."""
    ops = {op.name: op for op in problem.ops}
    writers = {b.name: sum(b.name in op.writes for op in problem.ops) for b in problem.buffers}
    written = {b.name: 0 for b in problem.buffers}
    filled = {b.name for b in problem.buffers if b.needed_before}
    for name in plan.order:
        op = ops[name]
        for read in op.reads:
            own = read in op.writes
            if written[read] < writers[read] - own or (not writers[read] and read not in filled):
                yield PlanVerdict("content", f"{name} reads {read} before it is written")
        for write in set(op.writes):
            written[write] += 1


def _placement(problem: Problem, plan: Plan) -> Iterator[PlanVerdict]:
    """Every needed buffer lies somewhere, once, in its own size."""
    sizes = {b.name: b.nbytes for b in problem.buffers}
    names = [p.buffer for p in plan.placements]
    for placement in plan.placements:
        if names.count(placement.buffer) > 1:
            yield PlanVerdict("placement", f"{placement.buffer} lies in two places")
        if placement.nbytes != sizes.get(placement.buffer):
            yield PlanVerdict(
                "placement", f"{placement.buffer} does not have {placement.nbytes} bytes"
            )
        if not 0 <= placement.first_op <= placement.last_op <= max(len(plan.order) - 1, 0):
            yield PlanVerdict("placement", f"{placement.buffer} lives outside the order")
    used = {name for op in problem.ops for name in (*op.reads, *op.writes)}
    used |= {b.name for b in problem.buffers if b.needed_before or b.needed_after}
    for name in sorted(used - set(names)):
        yield PlanVerdict("placement", f"{name} lies nowhere")


def _address(problem: Problem, plan: Plan) -> Iterator[PlanVerdict]:
    buffers = {b.name: b for b in problem.buffers}
    capacity = problem.memory.capacity_nbytes
    for p in plan.placements:
        alignment = problem.alignment_of(buffers[p.buffer])
        if p.offset % alignment:
            yield PlanVerdict(
                "alignment", f"{p.buffer} at {p.offset} is not a multiple of {alignment}"
            )
        if p.offset < 0 or (capacity and p.offset + p.nbytes > capacity):
            yield PlanVerdict("capacity", f"{p.buffer} at {p.offset} leaves the memory")
        for begin, nbytes in problem.memory.reserved:
            if p.offset < begin + nbytes and begin < p.offset + p.nbytes:
                yield PlanVerdict("reserved", f"{p.buffer} at {p.offset} takes reserved bytes")


def _overlap(_: Problem, plan: Plan) -> Iterator[PlanVerdict]:
    for a, b in combinations(plan.placements, 2):
        if (
            _share_a_moment(a, b)
            and a.offset < b.offset + b.nbytes
            and b.offset < a.offset + a.nbytes
        ):
            yield PlanVerdict(
                "overlap", f"{a.buffer} and {b.buffer} share bytes while both are alive"
            )


def _share_a_moment(a: Placement, b: Placement) -> bool:
    return any(b.first_op <= at <= b.last_op for at in range(a.first_op, a.last_op + 1))


def _residency(problem: Problem, plan: Plan) -> Iterator[PlanVerdict]:
    """What an operation touches is there, and what is needed before or after lasts that long."""
    ops = {op.name: op for op in problem.ops}
    places = {p.buffer: p for p in plan.placements}
    for at, name in enumerate(plan.order):
        for buffer in (*ops[name].reads, *ops[name].writes):
            if not places[buffer].first_op <= at <= places[buffer].last_op:
                yield PlanVerdict("residency", f"{buffer} is not in memory when {name} runs")
    for b in problem.buffers:
        if b.needed_before and places[b.name].first_op != 0:
            yield PlanVerdict("residency", f"{b.name} is not in memory at the begin")
        if b.needed_after and places[b.name].last_op != max(len(plan.order) - 1, 0):
            yield PlanVerdict("residency", f"{b.name} is not in memory at the end")


def _peak(_: Problem, plan: Plan) -> Iterator[PlanVerdict]:
    peak = max((p.offset + p.nbytes for p in plan.placements), default=0)
    if plan.peak_nbytes != peak:
        yield PlanVerdict("peak", f"the peak is {peak}, not {plan.peak_nbytes}")
