"""Every primitive by the name that traces know it by, and how a trace is carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from tilefarm.errors import ScheduleError
from tilefarm.target import Target
from tilefarm.trace import Step, Trace

from compile_worker.ir.func import Func
from compile_worker.schedule.consumers import reverse_compute_at, reverse_compute_inline
from compile_worker.schedule.distribution import distribute
from compile_worker.schedule.if_conversion import if_convert
from compile_worker.schedule.lockstep import lockstep
from compile_worker.schedule.loops import (
    fuse,
    overlap,
    parallel,
    reorder,
    split,
    tile,
    unroll,
    vectorize,
)
from compile_worker.schedule.marks import annotate, lower_with, pragma
from compile_worker.schedule.pads import pad
from compile_worker.schedule.reductions import decompose_reduction, rfactor
from compile_worker.schedule.schedule import Schedule
from compile_worker.schedule.stages import compute_at, compute_inline
from compile_worker.schedule.storage import (
    cache_read,
    cache_write,
    double_buffer,
    set_scope,
    storage_align,
)
from compile_worker.schedule.tensorize import tensorize
from compile_worker.schedule.threads import bind

PRIMITIVES: Final[Mapping[str, Callable[..., Schedule]]] = {
    "split": split,
    "overlap": overlap,
    "fuse": fuse,
    "reorder": reorder,
    "tile": tile,
    "pad": pad,
    "unroll": unroll,
    "vectorize": vectorize,
    "parallel": parallel,
    "bind": bind,
    "annotate": annotate,
    "pragma": pragma,
    "compute_at": compute_at,
    "compute_inline": compute_inline,
    "reverse_compute_at": reverse_compute_at,
    "reverse_compute_inline": reverse_compute_inline,
    "if_convert": if_convert,
    "distribute": distribute,
    "lockstep": lockstep,
    "decompose_reduction": decompose_reduction,
    "rfactor": rfactor,
    "cache_read": cache_read,
    "cache_write": cache_write,
    "set_scope": set_scope,
    "storage_align": storage_align,
    "double_buffer": double_buffer,
    "tensorize": tensorize,
    "lower_with": lower_with,
}


def replay(trace: Trace, func: Func, target: Target) -> Func:
    """The function that a trace makes of `func`; the same trace gives the same function.

    Raises:
        ScheduleError: a step is unknown, or refused by its primitive; it says which step.
    """
    for number, step in enumerate(trace.steps, 1):
        try:
            func = _applied(func, target, step, repr(step.args))
        except ScheduleError as refusal:
            raise refusal.at(number, str(step)) from None
    return func


@lru_cache(maxsize=1024)
def _applied(func: Func, target: Target, step: Step, text: str) -> Func:
    """The function after one step; remembered, for the schedules of a search begin alike.

    The text tells arguments apart that Python calls equal, such as 1 and True.
    """
    del text
    apply = PRIMITIVES.get(step.primitive)
    if apply is None:
        known = ", ".join(PRIMITIVES)
        raise ScheduleError(step.primitive, "", "there is no such primitive", f"one of {known}")
    return apply(Schedule(func, target), *step.args).func
