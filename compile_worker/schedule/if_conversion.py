"""The primitive that makes choices of conditions around stores."""

from __future__ import annotations

from tilefarm.errors import ScheduleError

from compile_worker.ir.accesses import in_bounds
from compile_worker.ir.expr import Expr, Load, Select
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.reductions import perfect_nest
from compile_worker.ir.stmt import If, Stmt, Store
from compile_worker.ir.visit import rewrite
from compile_worker.schedule.guards import unchanged_nest
from compile_worker.schedule.places import replaced
from compile_worker.schedule.schedule import Schedule, primitive


@primitive
def if_convert(schedule: Schedule, stage: str) -> Func:
    """Conditions around stores become choices of what is stored.

        for i: for k:                                             if_convert("out")
          if k < n[i]: out[i] = out[i] + x[i, k]
    ->
        for i: for k: out[i] = select(k < n[i], out[i] + x[i, k], out[i])

    So that a sum with a condition is a sum, and a branch for each element is an element. (If-
    conversion: Allen, Kennedy, Porterfield and Warren, POPL 1983.)

    Raises:
        ScheduleError: the stage has no condition around stores of one element, or one keeps a
            store within its buffer.
    """
    raw, nest = unchanged_nest("if_convert", schedule.func, stage)
    converted = rewrite(raw, _as_choice)
    if converted is raw:
        why = "it has no condition around stores of one element"
        raise ScheduleError("if_convert", stage, why, "the stage as it is")
    made = replaced(schedule.func, nest, perfect_nest(converted, stage))
    if next(in_bounds(made), None) is not None:
        why = "its condition keeps a store within its buffer"
        raise ScheduleError("if_convert", stage, why, "the stage as it is")
    return made


def _as_choice(node: Node) -> Node | None:
    if not isinstance(node, If):
        return None
    place = _place(node.then) or _place(node.otherwise)
    if place is None:
        return None
    then, otherwise = (_stored(stmt, place) for stmt in (node.then, node.otherwise))
    if then is None or otherwise is None:
        return None
    return Store(place.buffer, place.index, Select(node.condition, then, otherwise))


def _place(stmt: Stmt | None) -> Store | None:
    return stmt if isinstance(stmt, Store) else None


def _stored(stmt: Stmt | None, place: Store) -> Expr | None:
    """What a branch leaves in an element; None if it does something else."""
    if stmt is None:
        return Load(place.buffer, place.index)
    if isinstance(stmt, Store) and (stmt.buffer, stmt.index) == (place.buffer, place.index):
        return stmt.value
    return None
