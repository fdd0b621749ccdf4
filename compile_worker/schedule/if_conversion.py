"""The primitive that makes choices of conditions around stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
    places = _in_order(node.condition, then, otherwise)
    if places is None:
        return None
    return sequence(
        Store(
            place.buffer,
            place.index,
            Select(node.condition, then.get(place, place), otherwise.get(place, place)),
        )
        for place in places
    )


def _in_order(
    condition: Expr, then: Mapping[Load, Expr], otherwise: Mapping[Load, Expr]
) -> list[Load] | None:
    """The places in an order in which no choice changes what is asked for a later one.

    What is stored where the condition looks, as the largest so far, is chosen last.
    """
    places = list({**then, **otherwise})
    asked = {*mentioned(condition)}
    for each in (*otherwise.values(), *_indices(places)):
        asked |= mentioned(each)
    asking = [place for place in places if place.buffer in asked]
    if len(places) == 1 or not asking:
        return places
    last = asking[0]
    others = [place for place in places if place is not last]
    values = [branch[place] for branch in (then, otherwise) for place in others if place in branch]
    own = [branch[last] for branch in (then, otherwise) if last in branch]
    free = not any(last.buffer in mentioned(each) for each in (*values, *_indices(places)))
    free = free and not any(place.buffer in mentioned(each) for place in others for each in own)
    return [*others, last] if free and len(asking) == 1 else None


def _indices(places: Sequence[Load]) -> Iterator[Expr]:
    return (at for place in places for at in place.index)


def _stored(stmt: Stmt | None) -> dict[Load, Expr] | None:
    """What a branch leaves in which elements; None if it does something else, or one twice."""
    stores = () if stmt is None else statements(stmt)
    found = {Load(s.buffer, s.index): s.value for s in stores if isinstance(s, Store)}
    return found if len(found) == len(stores) else None
