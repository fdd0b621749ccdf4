"""Search spaces: what may be chosen for a workload on a target, by the machine that runs it."""

from __future__ import annotations

from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.errors import SpaceError
from compile_worker.generated import Generated, RuleOutcome
from compile_worker.machine import Machines, machine_on
from compile_worker.machines.known import MACHINES
from compile_worker.plugins.passes import with_default_trace

__all__ = [
    "Generated",
    "RuleOutcome",
    "SpaceError",
    "generate",
    "has_space",
    "ideal_cycles",
    "lower_bound_cycles",
]


def generate(
    workload: Workload, target: Target, *, on: str = "", machines: Machines = MACHINES
) -> Generated:
    """The search space of a workload; its schedules are lowered with the user's passes as well.

    Args:
        on: the kind of machine; the target's own where nothing is said.

    Raises:
        SpaceError: not even the smallest tiles fit; says which constraint is to blame.
        ValueError: there is nothing to choose.
        TargetError: this compiler knows no such machine.
    """
    made = machine_on(target, machines, on).space(workload, target)
    if made is None:
        raise ValueError(f"{workload.operator} has no search space")
    return with_default_trace(made)


def has_space(workload: Workload, target: Target, *, on: str = "") -> bool:
    """Whether there is anything to choose for a workload; others are compiled as they are."""
    try:
        return machine_on(target, MACHINES, on).space(workload, target) is not None
    except SpaceError:
        return True


def ideal_cycles(workload: Workload, target: Target) -> int:
    """Cycles of the multiplications alone; 0 where nobody knows."""
    return machine_on(target, MACHINES).bounds(workload, target).ideal


def lower_bound_cycles(workload: Workload, target: Target) -> int:
    """Cycles that no schedule goes below; 0 where nobody knows."""
    return machine_on(target, MACHINES).bounds(workload, target).least
