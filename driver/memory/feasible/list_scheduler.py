"""List scheduling under a memory's capacity, as Intel's npu_compiler does it.

Computations keep their order and begin once their operands are there and their buffers fit; what
they load is placed just before them, or earlier where there is room (`prefetch`). When nothing
runs and nothing fits, one buffer is written to the backing memory and comes back when it is used.
(vpux_compiler `feasible_memory_scheduler.cpp` of December 2024.)
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import islice

from driver.memory.feasible.actions import Action, ActionKind, Schedule
from driver.memory.feasible.graph import Graph, StepKind
from driver.memory.feasible.prefetch import Prefetcher
from driver.memory.feasible.residents import Residents
from driver.memory.feasible.timeline import Timeline
from driver.memory.feasible.victims import victim
from driver.memory.problem import Problem


def list_schedule(
    problem: Problem, graph: Graph, is_over: Callable[[], bool] = lambda: False
) -> Schedule | None:
    """The schedule; None when something fits nowhere though all that may leave has left, or when it
    is over before all is placed.
    """
    return _ListScheduler(problem, graph).run(is_over)


class _ListScheduler:
    """Ready steps by class, and what runs; see the module for the rules."""

    def __init__(self, problem: Problem, graph: Graph) -> None:
        self._graph = graph
        self._schedule = Schedule()
        self._residents = Residents(problem, graph, self._schedule)
        self._timeline = Timeline(problem, graph, self._schedule, self._residents)
        self._prefetcher = Prefetcher(graph, self._residents, self._timeline)
        self._in_degree = [len(each) for each in graph.waits_for]
        self._ready: set[int] = set()
        self._moves: list[tuple[int, int]] = []
        self._heads = dict.fromkeys(graph.queues, 0)
        self._running: list[tuple[int, bool, int, Action]] = []
        self._seen = 0

    def run(self, is_over: Callable[[], bool]) -> Schedule | None:
        if not self._open_present():
            return None
        self._distribute(at for at, left in enumerate(self._in_degree) if not left)
        steps = len(self._graph.instance.steps)
        while self._timeline.placed < steps:
            self._advance()
            if is_over() or not self._place_ready():
                return None
            if not self._start_placed() and not self._running and not self._spill():
                return None
        self._advance(to_the_end=True)
        return self._schedule if self._bring_back() else None

    def _open_present(self) -> bool:
        for at, buffer in enumerate(self._graph.instance.buffers):
            if buffer.is_present:
                self._residents.want(at).is_present = True
        return self._residents.allocate()

    def _distribute(self, ready: Iterable[int]) -> None:
        """Sorts ready steps by class; those of data need no time to make others ready."""
        left = list(ready)
        while left:
            at = left.pop()
            kind = self._graph.kinds[at]
            if kind is StepKind.DATA:
                self._prefetcher.add(at)
                left += self._lowered(at)
            elif kind is StepKind.COMPUTE:
                self._ready.add(at)
            else:
                insort(self._moves, (self._graph.rank[at], at))

    def _lowered(self, step: int) -> list[int]:
        """The consumers of a step that wait for nothing else."""
        ready = []
        for each in self._graph.consumers[step]:
            self._in_degree[each] -= 1
            if not self._in_degree[each]:
                ready.append(each)
        return ready

    def _advance(self, *, to_the_end: bool = False) -> None:
        """Ends what ends first; buffers that nobody uses any more go."""
        if not self._running:
            return
        horizon = min(self._timeline.free_at(entry[-1]) for entry in self._running)
        ready: list[int] = []
        while self._running and (to_the_end or self._running[0][0] <= horizon):
            action = heappop(self._running)[-1]
            self._end(action)
            if self._graph.kinds[action.step] is StepKind.COMPUTE and action.step >= 0:
                ready += self._lowered(action.step)
        self._distribute(ready)

    def _end(self, action: Action) -> None:
        freed = False
        for home in action.homes:
            mine = self._residents.users[home.buffer]
            mine.discard(action.step)
            is_kept = self._graph.instance.buffers[home.buffer].is_kept
            if not mine and not is_kept and self._residents.alive.get(home.buffer) is home:
                self._residents.release(home.buffer)
                freed = True
        if freed:
            self._timeline.align(action.end)

    def _place_ready(self) -> bool:
        """Places what may begin and fits; False when it has no addresses after all."""
        chosen = self._choose()
        for step in chosen:
            self._timeline.place(step)
            self._prefetcher.after(step)
        if chosen:
            self._prefetcher.run(len(chosen))
        if self._place_moves():
            self._prefetcher.run(len(chosen))
        return self._residents.allocate()

    def _choose(self) -> list[int]:
        """The next computations of all queues whose buffers fit together."""
        chosen: list[int] = []
        needed: set[int] = set()
        for engine, queue in self._graph.queues.items():
            instances = self._graph.instance.instances[engine]
            busy = [a for *_, a in self._running if a.engine == engine]
            free = instances - sum(instances if a.instance < 0 else 1 for a in busy)
            for step in self._candidates(engine, queue):
                takes = instances if self._graph.instance.steps[step].takes_all else 1
                more = needed | self._timeline.need(step)
                if takes > free or not self._residents.fits(more):
                    if self._graph.in_order[engine]:
                        break
                    continue
                chosen.append(step)
                needed = more
                free -= takes
            self._ready.difference_update(chosen)
        return chosen

    def _candidates(self, engine: int, queue: tuple[int, ...]) -> Iterator[int]:
        """Ready computations: an engine that keeps its order stops at the first that is not."""
        if not self._graph.in_order[engine]:
            mine = [at for at in self._ready if self._graph.instance.steps[at].engine == engine]
            yield from sorted(mine, key=self._graph.rank.__getitem__)
            return
        placed = self._timeline.actions
        while self._heads[engine] < len(queue) and queue[self._heads[engine]] in placed:
            self._heads[engine] += 1
        for step in islice(queue, self._heads[engine], None):
            if step not in self._ready:
                return
            yield step

    def _place_moves(self) -> bool:
        placed = False
        again = True
        while again:
            again = False
            for entry in list(self._moves):
                if self._residents.fits(self._timeline.need(entry[1])):
                    self._moves.remove(entry)
                    self._timeline.place(entry[1])
                    ready = self._lowered(entry[1])
                    self._distribute(ready)
                    again = again or any(each[1] in ready for each in self._moves)
                    placed = True
        return placed

    def _start_placed(self) -> bool:
        new = self._schedule.actions[self._seen :]
        self._seen = len(self._schedule.actions)
        for action in new:
            if action.step >= 0:
                is_late = action.kind is not ActionKind.PREFETCHED
                entry = (action.end, is_late, action.step, action)
                heappush(self._running, entry)
        return bool(new)

    def _spill(self) -> bool:
        """One buffer leaves; False when none may."""
        found = victim(self._graph, self._residents, self._timeline)
        if found is None:
            return False
        self._timeline.save(found)
        self._residents.release(found)
        self._residents.spilled.add(found)
        self._seen = len(self._schedule.actions)
        return True

    def _bring_back(self) -> bool:
        """What is needed at the end is in memory then."""
        buffers = self._graph.instance.buffers
        left = [at for at in self._residents.spilled if buffers[at].is_kept]
        for buffer in sorted(left, key=lambda at: (-buffers[at].nbytes, at)):
            if not self._residents.fits([buffer]):
                return False
            self._timeline.read(buffer)
            if not self._residents.allocate():
                return False
        return True
