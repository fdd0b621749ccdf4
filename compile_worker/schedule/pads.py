"""The primitive that makes a loop longer, so that it can be cut evenly: pad."""

from __future__ import annotations

from tilefarm.errors import ScheduleError

from compile_worker.ir.expr import Add, Const, Expr, Load, Lt, Max, Min, Select, index
from compile_worker.ir.func import Func
from compile_worker.ir.nests import wrap
from compile_worker.ir.stmt import Block, For, Stmt, Store
from compile_worker.ir.visit import find
from compile_worker.schedule.guards import serial
from compile_worker.schedule.perfect import perfect, rebuilt
from compile_worker.schedule.places import loop_path, loop_target, replaced
from compile_worker.schedule.schedule import Schedule, primitive


@primitive
def pad(schedule: Schedule, loop: str, multiple: int) -> Func:
    """Make a loop as long as a multiple; what its body does stays behind a guard.

        for i in 0:10: for j in 0:16: b[i, j] = f(i, j)
    ->                                                          pad("i", 4)
        for i in 0:12: if i < 10: for j in 0:16: b[i, j] = f(i, j)

    It can then be split by what did not divide it. A reduction of integers needs no guard: it meets
    its neutral element instead.

        for k in 0:10: s = s + f(k)   ->   for k in 0:12: s = s + select(k < 10, f(k), 0)

    Raises:
        ScheduleError: the extent is a multiple already.
    """
    path = loop_path("pad", schedule.func, loop)
    target = serial("pad", loop_target(path))
    if multiple < 1 or target.extent % multiple == 0:
        near = next(n for n in range(max(multiple, 1) + 1, target.extent + 2) if target.extent % n)
        why = f"extent {target.extent} needs no padding to a multiple of {multiple}"
        raise ScheduleError("pad", loop, why, f"a number that does not divide it, such as {near}")
    extent = -(-target.extent // multiple) * multiple
    inside = Lt(target.var, index(target.extent))
    body = _guarded(target, inside)
    return replaced(schedule.func, path, For(target.var, extent, body, target.kind, target.marks))


def _guarded(loop: For, inside: Expr) -> Stmt:
    """The body of a loop doing nothing where the condition fails."""
    nest = perfect(loop)
    block = nest.body
    if isinstance(block, Block) and loop.var in block.reductions and not nest.guards:
        neutral = _or_neutral(block, inside)
        if neutral is not None:
            return wrap(nest.loops[1:], neutral)
    return rebuilt(nest.loops[1:], (*nest.guards, inside), block)


def _or_neutral(block: Block, inside: Expr) -> Block | None:
    """A reduction that combines its neutral element where the condition fails.

    None if it has no such element, or reduces floats, which a guard leaves alone for sure.
    """
    store, start = block.body, block.init
    if not isinstance(store, Store) or not isinstance(start, Store):
        return None
    value, neutral = store.value, start.value
    if not isinstance(neutral, Const) or not isinstance(value, Add | Max | Min):
        return None
    own = Load(store.buffer, store.index)
    if value.dtype.is_float or value.left is not own or own in find(value.right, Load):
        return None
    if isinstance(value, Add) and neutral.value != 0:
        return None
    combined = type(value)(own, Select(inside, value.right, neutral))
    body = Store(store.buffer, store.index, combined)
    return Block(block.name, body, start, block.reductions, block.marks)
