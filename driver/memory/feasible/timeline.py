"""When placed steps and transfers run: each as soon as its operands and its engine allow."""

from __future__ import annotations

from driver.memory.barriers import Barriers
from driver.memory.feasible.actions import Action, ActionKind, Schedule
from driver.memory.feasible.graph import Graph, StepKind
from driver.memory.feasible.residents import Residents
from driver.memory.problem import Problem


class Timeline:
    """The next free tick of every instance of every engine, and what was placed there."""

    def __init__(
        self, problem: Problem, graph: Graph, schedule: Schedule, residents: Residents
    ) -> None:
        self._graph = graph
        self._schedule = schedule
        self._residents = residents
        self._free = [[0] * engine.instances for engine in problem.engines]
        self._barriers = Barriers(problem.barriers)
        self._last_begin = [0] * len(problem.engines)
        self._saved_at: dict[int, int] = {}
        self.actions: dict[int, Action] = {}

    @property
    def placed(self) -> int:
        """How many steps are."""
        return len(self.actions)

    def free_at(self, action: Action) -> int:
        """When the instance that an action occupies is free again."""
        free = self._free[action.engine]
        return min(free) if action.instance < 0 else free[action.instance]

    def align(self, tick: int) -> None:
        """Nothing that is placed from now on begins before a tick."""
        for free in self._free:
            free[:] = [max(each, tick) for each in free]

    def need(self, step: int) -> set[int]:
        """The buffers that a step, and the data steps that it still waits for, want in memory."""
        uses = self._graph.instance.steps[step].uses
        found = self._residents.missing(uses)
        for each in self._unplaced_data(step):
            found |= self._residents.missing(self._graph.instance.steps[each].uses)
        return found

    def _unplaced_data(self, step: int) -> list[int]:
        """The data steps that a step still waits for, all that there is if it is ready; earliest
        first.
        """
        left, found = [step], set[int]()
        while left:
            for each in self._graph.waits_for[left.pop()]:
                is_data = self._graph.kinds[each] is StepKind.DATA
                if is_data and each not in self.actions and each not in found:
                    found.add(each)
                    left.append(each)

        def order(at: int) -> tuple[int, int]:
            is_in_order = self._graph.in_order[self._graph.instance.steps[at].engine]
            return -1 if is_in_order else self.earliest(at), self._graph.rank[at]

        return sorted(found, key=order)

    def earliest(self, step: int) -> int:
        """When a step could begin, as far as what it waits for is placed."""
        its = self._graph.instance.steps[step]
        free = self._free[its.engine]
        at = max(free) if its.takes_all else min(free)
        for each in its.before:
            if each in self.actions:
                at = max(at, self.actions[each].end)
        if self._graph.in_order[its.engine]:
            at = max(at, self._last_begin[its.engine])
        return at

    def earliest_read(self, buffer: int) -> int:
        """When a buffer that has left could begin to come back."""
        read = self._graph.instance.buffers[buffer].read
        assert read is not None
        return max(min(self._free[read[0]]), self._saved_at[buffer])

    def place(self, step: int, kind: ActionKind = ActionKind.ORIGINAL) -> Action:
        """Places a step after what it loads, and after the return of what it uses."""
        for each in self._unplaced_data(step):
            self._place(each, kind)
        return self._place(step, kind)

    def _place(self, step: int, kind: ActionKind) -> Action:
        its = self._graph.instance.steps[step]
        for buffer in its.uses:
            if buffer in self._residents.spilled:
                self.read(buffer)
        begin = self.earliest(step)
        homes = [self._residents.alive.get(each) or self._residents.want(each) for each in its.uses]
        for home in homes:
            if home.actions and home.actions[0].kind is ActionKind.READ:
                begin = max(begin, home.actions[0].end)
        action = Action(kind=kind, engine=its.engine, ticks=its.ticks, step=step, homes=homes)
        self.actions[step] = action
        self._occupy(action, begin, takes_all=its.takes_all)
        self._last_begin[its.engine] = action.begin
        return action

    def save(self, buffer: int) -> Action:
        """Writes a buffer to the backing memory after its last use; all engines wait for that."""
        cost = self._graph.instance.buffers[buffer].save
        assert cost is not None
        home = self._residents.alive[buffer]
        action = Action(
            kind=ActionKind.SAVE, engine=cost[0], ticks=cost[1], buffer=buffer, homes=[home]
        )
        self._occupy(action, max(home.end, min(self._free[cost[0]])))
        self._saved_at[buffer] = action.end
        self.align(action.end)
        return action

    def read(self, buffer: int) -> Action:
        """Brings a buffer back."""
        cost = self._graph.instance.buffers[buffer].read
        assert cost is not None
        begin = self.earliest_read(buffer)
        home = self._residents.want(buffer)
        action = Action(
            kind=ActionKind.READ, engine=cost[0], ticks=cost[1], buffer=buffer, homes=[home]
        )
        return self._occupy(action, begin)

    def _occupy(self, action: Action, begin: int, *, takes_all: bool = False) -> Action:
        free = self._free[action.engine]
        action.instance = -1 if takes_all else free.index(min(free))
        action.begin = self._barriers.earliest(begin, action.ticks)
        action.end = action.begin + action.ticks
        self._barriers.hold(action.begin, action.end)
        mine = range(len(free)) if takes_all else (action.instance,)
        for instance in mine:
            free[instance] = action.end
        for home in action.homes:
            home.actions.append(action)
        self._schedule.actions.append(action)
        return action
