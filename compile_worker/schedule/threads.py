"""The primitive that gives each iteration of a loop a lane of the machine: bind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from tilefarm.errors import ScheduleError

from compile_worker.ir.annotations import SLOTS, THREAD, Thread
from compile_worker.ir.expr import Buffer
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, For, LoopKind
from compile_worker.ir.visit import find, rewrite
from compile_worker.schedule.guards import independent, serial, writes
from compile_worker.schedule.marks import marked
from compile_worker.schedule.places import Path, blocks, loop_path, loop_target, reads, replaced
from compile_worker.schedule.schedule import Schedule, primitive

Binder: TypeAlias = Callable[[Schedule, Path], Func]


@primitive
def bind(schedule: Schedule, loop: str, thread: str) -> Func:
    """Give each iteration of a loop a lane of its own: a worker, or a slot of on-chip memory.

    "worker" deals the iterations of an outermost loop out to the threads of the CPU; "vthread" (a
    virtual thread, as the old flow called it) lets the loads of an iteration overlap with the
    computation of the one before, each in its own copy of the on-chip buffers that it fills.

        for co in 0:2: ... a_inp ...   ->   for co in 0:2 {thread=vthread}: ... a_inp {slots=2} ...
                                                                bind("co", "vthread")

    Raises:
        ScheduleError: no such thread, one iteration, the loop reduces, is not outermost ("worker"),
            has more iterations than there are slots, or fills no on-chip buffer ("vthread").
    """
    known = next((each for each in THREADS if each == thread), None)
    if known is None:
        why = f"there is no thread {thread!r}"
        raise ScheduleError("bind", loop, why, f"one of {', '.join(THREADS)}")
    path = loop_path("bind", schedule.func, loop)
    if serial("bind", loop_target(path)).extent == 1:
        raise ScheduleError("bind", loop, "it has one iteration", "a loop with several")
    return THREADS[known](schedule, path)


def _to_workers(schedule: Schedule, path: Path) -> Func:
    loop = loop_target(path)
    independent("bind", loop)
    outer = [around.var.name for around in path.loops[:-1] if around.extent > 1]
    if outer:
        outermost = outer[0]
        raise ScheduleError(
            "bind",
            loop.var.name,
            f"it is inside {outermost}, and workers share out an outermost loop",
            f"{outermost}, or reorder it outwards first",
        )
    marks = (*loop.marks, THREAD("worker"))
    bound = For(loop.var, loop.extent, loop.body, LoopKind.PARALLEL, marks)
    return replaced(schedule.func, path, bound)


def _to_slots(schedule: Schedule, path: Path) -> Func:
    loop, most = loop_target(path), schedule.target.limits.buffers
    if loop.extent > most:
        why = f"it has {loop.extent} iterations, the target overlaps {most}"
        raise ScheduleError("bind", loop.var.name, why, f"the inner loop of split by {most}")
    filled = [alloc for alloc in find(schedule.func.body, Alloc) if _filled(alloc.buffer, loop)]
    private = {alloc.buffer for alloc in filled if _only_inside(schedule.func, alloc.buffer, loop)}
    if not private:
        why = "no on-chip buffer is filled and used in it alone"
        raise ScheduleError("bind", loop.var.name, why, "compute_at a copy in it first")
    func = replaced(schedule.func, path, marked(loop, THREAD("vthread")))
    slots = SLOTS(loop.extent)
    return rewrite(
        func,
        lambda at: marked(at, slots) if isinstance(at, Alloc) and at.buffer in private else None,
    )


def _filled(buffer: Buffer, loop: For) -> bool:
    """Whether a buffer is on the chip and written inside the loop."""
    return buffer.on_chip and any(writes(block, buffer) for block in blocks(loop))


def _only_inside(func: Func, buffer: Buffer, loop: For) -> bool:
    near = set(blocks(loop))
    far = (block for block in blocks(func.body) if block not in near)
    return not any(writes(block, buffer) or reads(block, buffer) for block in far)


THREADS: Final[Mapping[Thread, Binder]] = {"worker": _to_workers, "vthread": _to_slots}
"""What a loop can be bound to."""
