"""Loads and returns that run beside the computations before theirs, as far as there is room."""

from __future__ import annotations

from bisect import insort
from typing import Final

from driver.memory.feasible.actions import ActionKind
from driver.memory.feasible.graph import Graph, StepKind
from driver.memory.feasible.residents import Residents
from driver.memory.feasible.timeline import Timeline

MOST_LOADS: Final = 48
"""Loaded buffers at once, where the problem has no number of barriers, for which npu_compiler takes
it: 8 for each of a 40XX's 6 tiles.
"""
MOST_LEVELS: Final = 35
"""How many computations ahead; npu_compiler's limit."""


class Prefetcher:
    """Data steps that are ready, by level, and the computation that was placed last."""

    def __init__(self, graph: Graph, residents: Residents, timeline: Timeline) -> None:
        self._graph = graph
        self._residents = residents
        self._timeline = timeline
        self._ready: list[tuple[int, int, int]] = []
        self._users: dict[int, list[tuple[int, int, int]]] = {}
        self._last: int | None = None

    def add(self, step: int) -> None:
        """A data step waits for nothing."""
        insort(self._ready, (self._graph.levels[step], self._graph.rank[step], step))

    def after(self, step: int) -> None:
        """A computation was placed."""
        rank = self._graph.rank
        if self._last is None or rank[self._last] < rank[step]:
            self._last = step

    def run(self, placed: int) -> None:
        """Brings what is used next, until something does not fit, or would come no earlier."""
        if self._last is None:
            return
        while self._ready and self._ready[0][-1] in self._timeline.actions:
            self._ready.pop(0)
        most = self._graph.instance.barriers or MOST_LOADS
        room = most - placed - self._loaded()
        level = self._graph.levels[self._last]
        end = self._timeline.actions[self._last].end
        for ahead, _, what, is_step in self._candidates(level):
            if is_step and what in self._timeline.actions:
                continue  # it came before another one, on an engine that keeps its order
            earliest = self._timeline.earliest if is_step else self._timeline.earliest_read
            if room <= 0 or (earliest(what) > end and ahead > level + 1):
                return
            need = self._timeline.need(what) if is_step else {what}
            if not self._residents.fits(need):
                return
            room -= 1
            if is_step:
                self._timeline.place(what, ActionKind.PREFETCHED)
            else:
                self._timeline.read(what)

    def _candidates(self, level: int) -> list[tuple[int, int, int, bool]]:
        """(level, rank, step or buffer, whether it is a step) of what may come now."""
        assert self._last is not None
        last = self._graph.rank[self._last]
        found: list[tuple[int, int, int, bool]] = []
        for ahead, rank, step in self._ready:
            if ahead > level + MOST_LEVELS:
                break
            if rank <= last and step not in self._timeline.actions:
                found.append((ahead, rank, step, True))
        never = (0, 0, -1)
        for buffer in self._residents.spilled:
            users = self._users_in_order(buffer)
            ahead, rank, user = next(
                (u for u in users if u[-1] not in self._timeline.actions), never
            )
            if user >= 0 and ahead <= level + MOST_LEVELS:
                found.append((ahead, rank, buffer, False))
        return sorted(found)

    def _users_in_order(self, buffer: int) -> list[tuple[int, int, int]]:
        """(level, rank, step) of all steps that use a buffer."""
        if buffer not in self._users:
            levels, rank = self._graph.levels, self._graph.rank
            users = self._graph.instance.users[buffer]
            self._users[buffer] = sorted((levels[at], rank[at], at) for at in users)
        return self._users[buffer]

    def _loaded(self) -> int:
        """How many buffers in memory were loaded."""
        return sum(
            any(
                each.step < 0 or self._graph.kinds[each.step] is StepKind.DATA
                for each in home.actions[:1]
            )
            for home in self._residents.alive.values()
        )
