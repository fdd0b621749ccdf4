"""The primitive that makes choices of conditions around stores."""

from __future__ import annotations

from tilefarm.errors import ScheduleError

from compile_worker.ir.accesses import in_bounds
from compile_worker.ir.expr import Expr, Load, Select
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.reductions import nest_of_block, statements
from compile_worker.ir.stmt import If, Seq, Stmt, Store, sequence
from compile_worker.ir.visit import mentioned, rewrite
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
        ScheduleError: the stage has no condition around stores alone, what they store would change
            it, or it keeps a store within its buffer.
    """
    raw, nest = unchanged_nest("if_convert", schedule.func, stage)
    converted = rewrite(raw, _as_choice)
    if converted is raw:
        why = "it has no condition around stores alone that leave it as it is"
        raise ScheduleError("if_convert", stage, why, "the stage as it is")
    made = replaced(schedule.func, nest, nest_of_block(converted, stage))
    if next(in_bounds(made), None) is not None:
        why = "its condition keeps a store within its buffer"
        raise ScheduleError("if_convert", stage, why, "the stage as it is")
    return made


def _as_choice(node: Node) -> Node | None:
    if isinstance(node, Seq):
        return sequence(node.stmts)  # where several choices stand for one condition
    if not isinstance(node, If):
        return None
    then, otherwise = _stored(node.then), _stored(node.otherwise)
    if then is None or otherwise is None:
        return None
    places = list({**then, **otherwise})
    stored = {place.buffer for place in places}
    first = [node.condition, *otherwise.values(), *(at for place in places for at in place.index)]
    if len(places) > 1 and any(stored & mentioned(each) for each in first):
        return None  # what is chosen first would change what is asked for the next one
    return sequence(
        Store(
            place.buffer,
            place.index,
            Select(node.condition, then.get(place, place), otherwise.get(place, place)),
        )
        for place in places
    )


def _stored(stmt: Stmt | None) -> dict[Load, Expr] | None:
    """What a branch leaves in which elements; None if it does something else, or one twice."""
    stores = () if stmt is None else statements(stmt)
    found = {Load(s.buffer, s.index): s.value for s in stores if isinstance(s, Store)}
    return found if len(found) == len(stores) else None
