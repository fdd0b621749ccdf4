"""What plans cost, measured: kernels that they differ in, each run once on the simulator.

A plan that costs less by estimates may cost more in truth: the least that the accelerator needs
(`accuracy.price`) knows nothing of loads that wait, nor of what a shift of each channel
takes. So the kernels of plans that are compared are compiled with the schedules that are predicted
to be best, which a search would try first, and run. Those that plans differ in come first, as what
they have in common decides nothing. Work of the processor stays an estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tilefarm.clock import Clock
from tilefarm.workload import Workload

from driver.network.accuracy.plans import Basis, RemedyPlan, best_plan
from driver.network.accuracy.price import estimated_cycles
from driver.network.integer.network import Network

MOST_SECONDS: Final = 60.0
"""For the kernels of all plans, of which one takes about a second, mostly to find its schedule;
none is begun later."""
_MOST_COMPARED: Final = 8
"""Plans that keep the promise, the cheapest by estimate: dearer ones will not be the cheapest."""

KernelCycles = Callable[[Workload], int | None]
"""The cycles of a kernel; None where it cannot be run."""


@dataclass(frozen=True, slots=True)
class Priced:
    """Plans with what they cost, and the cheapest that keeps the promise, if any does."""

    plans: tuple[RemedyPlan, ...]
    best: RemedyPlan | None


def with_measured_cycles(
    plans: Sequence[RemedyPlan],
    networks: Sequence[Network],
    limit: float,
    measure: KernelCycles,
    clock: Clock,
    *,
    most_seconds: float = MOST_SECONDS,
    heard: Callable[[int, int], None] = lambda _done, _all: None,
) -> Priced:
    """The plans, compared by measured cycles as far as time allows.

    The two that cost least by estimates are compared first, then one after the other with these,
    and at last the one without remedies, which the others are told in multiples of. A plan counts
    as compared where every kernel was measured in which it differs from those before it.

    Args:
        networks: of the plans, for one target.
        limit: points that may be lost.
        measure: is asked once for each workload, until the time is over.
        heard: gets the kernels that were measured, and how many there may be.
    """
    network_of = dict(zip((plan.remedies for plan in plans), networks, strict=True))
    kept = sorted(
        (plan for plan in plans if plan.points <= limit),
        key=lambda plan: (plan.cycles, len(plan.remedies)),
    )[:_MOST_COMPARED]
    wanted = [*kept, *(plan for plan in plans if not plan.remedies and plan not in kept)]
    best = best_plan(plans, limit)
    if best is None or len(wanted) < 2:
        return Priced(tuple(plans), best)
    every = {w for plan in wanted for w, _ in network_of[plan.remedies].workloads()}
    known: dict[Workload, int] = {}
    end = clock.seconds() + most_seconds

    def are_known(workloads: Sequence[Workload]) -> bool:
        for workload in workloads:
            if workload in known:
                continue
            if clock.seconds() >= end:
                return False
            heard(len(known), len(every))
            cycles = measure(workload)
            if cycles is None:
                return False
            known[workload] = cycles
        return True

    compared: list[Network] = []
    for count in range(2, len(wanted) + 1):
        some = [network_of[plan.remedies] for plan in wanted[:count]]
        if not are_known(_workloads(some)[0]):
            break
        compared = some
    if not compared:
        return Priced(tuple(plans), best)
    basis: Basis = "measured" if are_known(_workloads(compared)[1]) else "differences"
    priced = {
        plan.remedies: replace(
            plan, cycles=estimated_cycles(network_of[plan.remedies], known), basis=basis
        )
        for plan in wanted[: len(compared)]
    }
    return Priced(
        tuple(priced.get(plan.remedies, plan) for plan in plans),
        best_plan(list(priced.values()), limit),
    )


def _workloads(networks: Sequence[Network]) -> tuple[list[Workload], list[Workload]]:
    """Those that not all networks have as often, and those that they have in common."""
    counts = [dict(network.workloads()) for network in networks]
    every = dict.fromkeys(workload for each in counts for workload in each)
    differing = [w for w in every if len({each.get(w, 0) for each in counts}) > 1]
    return differing, [w for w in every if w not in differing]
