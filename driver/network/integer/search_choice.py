"""Which workloads are searched: what the target's machine computes and has a choice for."""

from __future__ import annotations

from functools import cache

from tilefarm.target import Target
from tilefarm.workload import ACCELERATED, Workload

from compile_worker.errors import SpaceError
from compile_worker.space import generate


@cache
def is_searched(workload: Workload, target: Target) -> bool:
    """Whether there is a schedule to choose: beside an accelerator, for what that computes."""
    if target.has_accelerator and workload.operator not in ACCELERATED:
        return False
    try:
        generate(workload, target)
    except (SpaceError, ValueError):  # the latter says that there is nothing to choose
        return False
    return True
