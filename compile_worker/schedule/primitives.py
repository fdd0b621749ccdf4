"""Every primitive by the name that traces know it by, and how a trace is carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tilefarm.errors import ScheduleError
from tilefarm.target import Target
from tilefarm.trace import Trace

from compile_worker.ir.func import Func
from compile_worker.schedule.loops import fuse, parallel, reorder, split, tile, unroll, vectorize
from compile_worker.schedule.marks import annotate
from compile_worker.schedule.schedule import Schedule
from compile_worker.schedule.stages import compute_at, compute_inline
from compile_worker.schedule.storage import cache_read, cache_write, double_buffer, set_scope
from compile_worker.schedule.tensorize import tensorize

PRIMITIVES: Final[Mapping[str, Callable[..., Schedule]]] = {
    "split": split,
    "fuse": fuse,
    "reorder": reorder,
    "tile": tile,
    "unroll": unroll,
    "vectorize": vectorize,
    "parallel": parallel,
    "annotate": annotate,
    "compute_at": compute_at,
    "compute_inline": compute_inline,
    "cache_read": cache_read,
    "cache_write": cache_write,
    "set_scope": set_scope,
    "double_buffer": double_buffer,
    "tensorize": tensorize,
}


def replay(trace: Trace, func: Func, target: Target) -> Func:
    """The function that a trace makes of `func`; the same trace gives the same function.

    Raises:
        ScheduleError: a step is unknown, or refused by its primitive.
    """
    schedule = Schedule(func, target)
    for step in trace.steps:
        apply = PRIMITIVES.get(step.primitive)
        if apply is None:
            known = ", ".join(PRIMITIVES)
            raise ScheduleError(step.primitive, "", "there is no such primitive", f"one of {known}")
        schedule = apply(schedule, *step.args)
    return schedule.func
