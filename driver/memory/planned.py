"""From a schedule and its addresses to the plan of a problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from driver.memory.instance import Instance
from driver.memory.places import Places
from driver.memory.plan import Plan, PlannedOp, PlannedTransfer, TransferKind
from driver.memory.problem import Problem
from driver.memory.schedule import Action, Move, Schedule, move_of


def plan_of(
    problem: Problem, instance: Instance, found: Schedule, places: Places, method: str
) -> Plan:
    """The plan of them, by begin; bounds are those of the addresses."""
    actions = sorted(found.actions, key=lambda a: (a.begin, a.end))
    ops = tuple(
        PlannedOp(
            op=problem.ops[each.token].name, begin=each.begin, end=each.end, instance=each.instance
        )
        for each in actions
        if 0 <= each.token < instance.operations
    )
    return Plan(
        ops=ops,
        residencies=places.residencies,
        transfers=tuple(_transfers(problem, instance, found)),
        repeats=tuple(_repeats(problem, instance, actions)),
        makespan_ticks=found.makespan,
        peaks=places.peaks,
        extra_nbytes=found.extra_nbytes,
        bounds=places.bounds,
        method=method,
    )


def _transfers(problem: Problem, instance: Instance, found: Schedule) -> Iterator[PlannedTransfer]:
    for each in found.actions:
        if 0 <= each.token < instance.operations:
            continue
        if each.token < 0:
            move, buffer = move_of(each.token)
            if move is Move.AGAIN:
                continue
            kind = TransferKind.SAVE if move is Move.SAVE else TransferKind.READ
        else:
            kind, (buffer,) = TransferKind.READ, instance.steps[each.token].uses
        yield PlannedTransfer(
            buffer=instance.buffers[buffer].name,
            kind=kind,
            begin=each.begin,
            end=each.end,
            engine=problem.engines[each.engine].name,
            instance=each.instance,
        )


def _repeats(
    problem: Problem, instance: Instance, actions: Sequence[Action]
) -> Iterator[PlannedOp]:
    for each in actions:
        if each.token < 0 and move_of(each.token)[0] is Move.AGAIN:
            maker = instance.buffers[move_of(each.token)[1]].remade_by
            assert maker is not None
            yield PlannedOp(
                op=problem.ops[maker].name, begin=each.begin, end=each.end, instance=each.instance
            )
