"""Primitives that move stages: compute_at, compute_inline."""

from __future__ import annotations

from collections.abc import Mapping

from tilefarm.errors import ScheduleError

from compile_worker.ir.bounds import extents_of
from compile_worker.ir.expr import Buffer, Expr, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.nests import wrap
from compile_worker.ir.stmt import Block, For, Seq, Stmt
from compile_worker.ir.visit import rewrite, substitute
from compile_worker.schedule.guards import plain_store
from compile_worker.schedule.places import (
    Path,
    block_path,
    block_target,
    blocks,
    in_sequence,
    loads,
    loop_path,
    loop_target,
    nest_path,
    reads,
    rebind,
    replaced,
)
from compile_worker.schedule.region import ZERO, AxisRange, required
from compile_worker.schedule.schedule import Schedule, primitive
from compile_worker.schedule.storage import without_allocation


@primitive
def compute_at(schedule: Schedule, stage: str, loop: str) -> Func:
    """Compute a stage inside a loop of its consumer: only what each iteration needs, just before.

        for i in 0:8: a[i] = f(i)
        for j in 0:4: for k in 0:3: b[j] += a[2*j + k]
    ->                                                          compute_at("a", "j")
        for j in 0:4:
          for i in 0:3: a[2*j + i] = f(2*j + i)
          for k in 0:3: b[j] += a[2*j + k]

    Overlapping regions (halos) are computed anew. The buffer keeps its shape; lowering compacts it.

    Raises:
        ScheduleError: something outside the loop needs the stage too, nothing inside does, the
            stage is the function's result, or its own loops were changed before.
    """
    func = schedule.func
    source = block_path("compute_at", func, stage)
    block = block_target(source)
    goal = loop_path("compute_at", func, loop)
    nest = nest_path(source)
    if nest.target in goal.steps:
        why = f"{loop} is a loop of the stage itself"
        raise ScheduleError("compute_at", stage, why, "a loop of what reads it")
    store = plain_store("compute_at", func, block, source)
    if store.buffer in func.params:
        why = "it is the function's result, nothing consumes it"
        raise ScheduleError("compute_at", stage, why, "reverse_compute_at")
    needed = _consumed("compute_at", func, block, store.buffer, goal)
    spans = required(
        needed, extents_of(loop_target(goal).body), {at.var: at.extent for at in goal.loops}
    )
    axes = [at for at in store.index if isinstance(at, Var)]
    moved = shrunk(source.within(nest.target), dict(zip(axes, spans, strict=True)))
    func = replaced(func, nest, None)
    goal = loop_path("compute_at", func, loop)
    return replaced(func, goal, _with_first(loop_target(goal), moved, store.buffer))


@primitive
def compute_inline(schedule: Schedule, stage: str) -> Func:
    """Compute a stage where it is read, element by element, instead of storing it.

        for i: a[i] = f(i)
        for j: b[j] = a[j + 1] * 2
    ->                                                          compute_inline("a")
        for j: b[j] = f(j + 1) * 2

    Raises:
        ScheduleError: the stage reduces, is the function's result, or was changed before.
    """
    func = schedule.func
    source = block_path("compute_inline", func, stage)
    block = block_target(source)
    store = plain_store("compute_inline", func, block, source)
    if block.init is not None:
        raise ScheduleError("compute_inline", stage, "it is a reduction", "compute_at instead")
    if store.buffer in func.params:
        why = "it is the function's result"
        raise ScheduleError("compute_inline", stage, why, "reverse_compute_inline")
    axes = [at for at in store.index if isinstance(at, Var)]

    def inlined(node: object) -> Expr | None:
        if isinstance(node, Load) and node.buffer is store.buffer:
            return substitute(store.value, dict(zip(axes, node.index, strict=True)))
        return None

    func = replaced(func, nest_path(source), None)
    return without_allocation(rewrite(func, inlined), store.buffer)


def _consumed(primitive: str, func: Func, block: Block, buffer: Buffer, goal: Path) -> list[Load]:
    """What blocks below the goal read of the buffer, given that no block elsewhere does."""
    found: list[Load] = []
    near = set(blocks(goal.target))
    for reader in blocks(func.body):
        wanted = [load for load in loads(reader) if load.buffer is buffer]
        if not wanted or reader is block:
            continue
        if reader not in near:
            why = f"{reader.name} needs it too, outside of {loop_target(goal).var.name}"
            raise ScheduleError(primitive, block.name, why, "a loop around both")
        found += wanted
    if not found:
        why = f"nothing inside {loop_target(goal).var.name} reads {buffer.name}"
        readers = [each.name for each in blocks(func.body) if reads(each, buffer)]
        hint = f"a loop of {', '.join(name for name in readers if name != block.name)}"
        raise ScheduleError(primitive, block.name, why, hint)
    return found


def shrunk(nest: Path, spans: Mapping[Var, AxisRange]) -> Stmt:
    """The nest with those of its loops cut that have a span, which begin at its base."""
    values = {var: span.base + var for var, span in spans.items() if span.base is not ZERO}
    loops = [
        For(
            loop.var,
            spans[loop.var].extent if loop.var in spans else loop.extent,
            loop.body,
            loop.kind,
            loop.marks,
        )
        for loop in nest.loops
    ]
    return wrap(loops, rebind(nest.target, values))


def _with_first(loop: For, stmt: Stmt, buffer: Buffer) -> For:
    """The loop with `stmt` before the first thing in it that reads `buffer`."""
    body = loop.body
    parts = list(body.stmts) if isinstance(body, Seq) else [body]
    at = next(at for at, part in enumerate(parts) if reads(part, buffer))
    whole = in_sequence([*parts[:at], stmt, *parts[at:]])
    assert whole is not None
    return For(loop.var, loop.extent, whole, loop.kind, loop.marks)
