"""Final times: every engine's queue is played again, and nothing waits for more than it must.

While the list scheduler grows a schedule it lets all engines wait where bytes come free. With all
addresses known, an action waits for its operands, for its turn on its engine, and for those who
used its bytes before: no later than before, and often earlier.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from driver.memory.barriers import Barriers
from driver.memory.feasible.actions import Action, ActionKind, Home, Schedule
from driver.memory.feasible.graph import Graph


def retimed(graph: Graph, schedule: Schedule) -> Schedule:
    """The schedule, changed in place, with all begins as early as they may be."""
    number = {id(each): at for at, each in enumerate(schedule.actions)}
    order = sorted(schedule.actions, key=lambda a: (a.begin, number[id(a)]))
    earlier = dict(_earlier_homes(graph, schedule))
    replay = _Replay(graph, earlier)
    for action in order:
        replay.begin(action)
    schedule.actions = order
    return schedule


def _earlier_homes(graph: Graph, schedule: Schedule) -> Iterator[tuple[int, list[Home]]]:
    """For each home, by id, those that had some of its bytes, or its buffer, just before."""
    latest: dict[int, Home] = {}
    blocks: dict[int, list[tuple[int, int, Home]]] = defaultdict(list)
    for home in sorted(schedule.homes, key=lambda h: (h.begin, not h.is_present)):
        its = graph.instance.buffers[home.buffer]
        begin, end = home.offset, home.offset + its.nbytes
        left: list[tuple[int, int, Home]] = []
        before = {id(each): each for each in [latest.get(home.buffer)] if each is not None}
        latest[home.buffer] = home
        for low, high, other in blocks[its.memory]:
            if high <= begin or end <= low:
                left.append((low, high, other))
                continue
            before[id(other)] = other
            if low < begin:
                left.append((low, begin, other))
            if end < high:
                left.append((end, high, other))
        blocks[its.memory] = [*left, (begin, end, home)]
        yield id(home), list(before.values())


class _Replay:
    """When instances of engines, homes and copies of buffers are free or there."""

    def __init__(self, graph: Graph, earlier: dict[int, list[Home]]) -> None:
        self._graph = graph
        self._earlier = earlier
        self._free: dict[tuple[int, int], int] = {}
        self._barriers = Barriers(graph.instance.barriers)
        self._begun: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._changed: dict[int, int] = defaultdict(int)
        self._saved: dict[int, int] = {}
        self._released: dict[int, int] = defaultdict(int)

    def begin(self, action: Action) -> None:
        """Gives an action, whose predecessors all have theirs, its final time."""
        instances = range(self._graph.instance.instances[action.engine])
        mine = instances if action.instance < 0 else (action.instance,)
        at = max(self._free.get((action.engine, each), 0) for each in mine)
        at = self._barriers.earliest(max([at, *self._waits(action)]), action.ticks)
        action.begin, action.end = at, at + action.ticks
        self._barriers.hold(action.begin, action.end)
        for each in mine:
            self._free[action.engine, each] = action.end
        self._note(action)

    def _waits(self, action: Action) -> Iterator[int]:
        for home in action.homes:
            for other in self._earlier[id(home)]:
                yield self._released[id(other)]
            brings = home.actions[0]
            if brings is not action and brings.kind is ActionKind.READ:
                yield brings.end
        if action.kind is ActionKind.SAVE:
            yield self._changed[action.buffer]
        elif action.kind is ActionKind.READ:
            yield self._saved[action.buffer]
        else:
            step = self._graph.instance.steps[action.step]
            yield from (self._ends[each] for each in step.before)
            if self._graph.in_order[step.engine]:
                yield self._begun.get(step.engine, 0)

    def _note(self, action: Action) -> None:
        for home in action.homes:
            self._released[id(home)] = max(self._released[id(home)], action.end)
        if action.kind is ActionKind.SAVE:
            self._saved[action.buffer] = action.end
        elif action.step >= 0:
            self._ends[action.step] = action.end
            self._begun[action.engine] = action.begin
            changes = self._graph.instance.steps[action.step].changes
            for home in action.homes:
                if home.buffer in changes or home.actions[0] is action:
                    self._changed[home.buffer] = max(self._changed[home.buffer], action.end)
