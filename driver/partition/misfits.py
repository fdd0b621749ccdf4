"""Workloads that the accelerator has an operator for, but no room."""

from __future__ import annotations

from functools import cache

from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.errors import SpaceError
from compile_worker.space import generate


@cache
def misfit(workload: Workload, target: Target) -> str:
    """Why not even the smallest tiles of a workload fit on the target; empty if they do."""
    try:
        generate(workload, target)
    except SpaceError as refusal:
        *_, constraint, why = refusal.args
        return f"no tiles of it fit on the accelerator: {constraint}: {why}"
    return ""
