"""What the list scheduler knows of a problem before it starts: classes, levels and queues of steps.

A *data* step loads a buffer that somebody computes with; such steps are pulled on demand and never
pushed, so that weights cannot fill a memory. What computes is *compute*, all else a *move*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from driver.memory.instance import Instance
from driver.memory.problem import EngineKind, Problem


class StepKind(Enum):
    """How the scheduler treats a step."""

    DATA = auto()
    COMPUTE = auto()
    MOVE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Steps in an order of priority, in which computations are as the problem gives them.

    Attributes:
        kinds, waits_for, consumers: of each step; engines of DMA that keep an order wait as well.
        rank: of each step in the order.
        levels: how many computations come before a step's first one.
        queues: of each engine that computes, its steps by rank.
    """

    instance: Instance
    kinds: tuple[StepKind, ...]
    waits_for: tuple[tuple[int, ...], ...]
    consumers: tuple[tuple[int, ...], ...]
    rank: tuple[int, ...]
    levels: tuple[int, ...]
    queues: dict[int, tuple[int, ...]]
    in_order: tuple[bool, ...]


def graph_of(problem: Problem, instance: Instance, order: Sequence[int]) -> Graph:
    """The graph of a problem whose steps have the priorities of an order."""
    steps = instance.steps
    is_dma = [engine.kind is EngineKind.DMA for engine in problem.engines]
    waits = tuple(
        tuple(dict.fromkeys((*s.before, *(s.behind if is_dma[s.engine] else ())))) for s in steps
    )
    consumers: list[list[int]] = [[] for _ in steps]
    for at, mine in enumerate(waits):
        for each in mine:
            consumers[each].append(at)
    kinds = _kinds(problem, instance, is_dma)
    queues: dict[int, list[int]] = {}
    rank = [0] * len(steps)
    for place, at in enumerate(order):
        rank[at] = place
        if kinds[at] is StepKind.COMPUTE:
            queues.setdefault(steps[at].engine, []).append(at)
    return Graph(
        instance=instance,
        kinds=kinds,
        waits_for=waits,
        consumers=tuple(map(tuple, consumers)),
        rank=tuple(rank),
        levels=_levels(instance, kinds, order),
        queues={engine: tuple(mine) for engine, mine in queues.items()},
        in_order=tuple(engine.in_order for engine in problem.engines),
    )


def _kinds(problem: Problem, instance: Instance, is_dma: Sequence[bool]) -> tuple[StepKind, ...]:
    kinds = [StepKind.MOVE] * len(instance.steps)
    is_read = {before for step in instance.steps for before in step.before}
    for at in instance.arranged(lambda at: at):
        step = instance.steps[at]
        reads = problem.ops[at].reads if at < instance.operations else ()
        if not is_dma[step.engine]:
            kinds[at] = StepKind.COMPUTE
        elif (
            not reads
            and at in is_read
            and all(kinds[each] is not StepKind.DATA for each in step.before)
        ):
            kinds[at] = StepKind.DATA
    return tuple(kinds)


def _levels(instance: Instance, kinds: Sequence[StepKind], order: Sequence[int]) -> tuple[int, ...]:
    computes = [at for at in order if kinds[at] is StepKind.COMPUTE]
    levels = [len(computes)] * len(kinds)
    for level, at in enumerate(computes):
        levels[at] = level
    for at in reversed(instance.arranged(lambda at: at)):
        for before in instance.steps[at].before:
            if kinds[before] is not StepKind.COMPUTE:
                levels[before] = min(levels[before], levels[at])
    return tuple(levels)
