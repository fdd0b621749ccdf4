"""From a problem to a plan: order, live ranges, and the best of several allocations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilefarm.errors import UserError

from driver.memory.bounds import peak_demand
from driver.memory.linear_scan import place
from driver.memory.list_scheduler import LiveRange, list_order, live_ranges
from driver.memory.packing import ORDERS, improved, pack, peak_of
from driver.memory.problem import AddressRange, Placement, Plan, Problem

_TRIES: Final = 100


def plan(problem: Problem, *, seed: int = 0) -> Plan:
    """The plan with the smallest peak that was found; `validate` proves it from scratch.

    Tried in this order until the lower bound is reached: linear scan, packing in several orders,
    hill climbing. Same problem and seed, same plan.

    Raises:
        ValueError: the problem contradicts itself (see `list_order`).
        UserError: the buffers do not fit the capacity, as far as could be found.
    """
    order = list_order(problem)
    ranges = live_ranges(problem, order)
    demand = peak_demand(problem, ranges)
    method, placements = min(
        _until(demand.nbytes, _allocations(problem.memory, ranges, demand.nbytes, seed)),
        key=lambda found: peak_of(found[1]),
    )
    peak = peak_of(placements)
    capacity = problem.memory.capacity_nbytes
    if capacity and peak > capacity:
        where = order[demand.at_op].name if order else "the begin"
        raise UserError(
            f"intermediate tensors need {peak} bytes, the memory has {capacity}; at {where} "
            f"{demand.nbytes} bytes are alive at once",
            "a target with more memory, or a smaller batch",
        )
    by_name = {p.buffer: p for p in placements}
    return Plan(
        order=tuple(op.name for op in order),
        placements=tuple(by_name[r.buffer.name] for r in ranges),
        peak_nbytes=peak,
        bound_nbytes=demand.nbytes,
        method=method,
    )


def _allocations(
    memory: AddressRange, ranges: tuple[LiveRange, ...], goal: int, seed: int
) -> Iterator[tuple[str, tuple[Placement, ...]]]:
    reserved = sum(nbytes for _, nbytes in memory.reserved)
    step = max((r.buffer.alignment or memory.alignment for r in ranges), default=1)
    endless = sum(r.buffer.nbytes + 2 * step for r in ranges) + max(
        (offset + nbytes for offset, nbytes in memory.reserved), default=0
    )
    scanned = place(ranges, memory, memory.capacity_nbytes or endless + reserved)
    if scanned is not None:
        yield "linear scan", scanned
    for name, key in ORDERS.items():
        yield f"packed, {name}", pack(sorted(ranges, key=key), memory)
    for name, key in ORDERS.items():
        start = sorted(ranges, key=key)
        found = improved(start, memory, goal_nbytes=goal, tries=_TRIES, seed=seed)
        yield f"climbed from {name}", found


def _until(
    goal: int, allocations: Iterator[tuple[str, tuple[Placement, ...]]]
) -> Iterator[tuple[str, tuple[Placement, ...]]]:
    """Passes allocations on up to the first one that nothing can beat."""
    for found in allocations:
        yield found
        if peak_of(found[1]) <= goal:
            return
