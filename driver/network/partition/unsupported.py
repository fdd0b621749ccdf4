"""Which workloads are the accelerator's: it has an operator for them, and room."""

from __future__ import annotations

from functools import cache

from tilefarm.target import Target
from tilefarm.workload import ACCELERATED, Workload

from compile_worker.errors import SpaceError
from compile_worker.space import generate


def is_accelerated(workload: Workload, target: Target) -> bool:
    """Whether a workload runs on the accelerator; others run on the processor."""
    return workload.operator in ACCELERATED and not misfit(workload, target)


@cache
def misfit(workload: Workload, target: Target) -> str:
    """Why no tiles of a workload fit on the target, or there is no place; empty if they do."""
    if not target.has_accelerator:
        return "the target is a processor alone"
    try:
        generate(workload, target)
    except SpaceError as refusal:
        *_, constraint, why = refusal.args
        return f"no tiles of it fit on the accelerator: {constraint}: {why}"
    return ""
