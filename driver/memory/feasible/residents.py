"""Which buffers are in memory now, which have left, and where new ones fit together."""

from __future__ import annotations

from collections.abc import Iterable

from driver.memory.feasible.actions import Home, Schedule
from driver.memory.feasible.graph import Graph
from driver.memory.linear_scan import BufferRequest, LinearScan
from driver.memory.problem import Problem


class Residents:
    """The state of all memories while a schedule grows.

    Buffers that are wanted in one step of the scheduler are collected first, and get their
    addresses together: those whose writers have many consumers first, then large ones.
    """

    def __init__(self, problem: Problem, graph: Graph, schedule: Schedule) -> None:
        self._graph = graph
        self._schedule = schedule
        self.alive: dict[int, Home] = {}
        self.spilled: set[int] = set()
        self.users = [set(mine) for mine in graph.instance.users]
        self._wanted: dict[int, Home] = {}
        self._scans = [self._scan(problem, at) for at in range(len(problem.memories))]
        self._priority = [self._priority_of(at) for at in range(len(graph.instance.buffers))]

    def _scan(self, problem: Problem, number: int) -> LinearScan:
        memory = problem.memories[number]
        mine = [b for b in self._graph.instance.buffers if b.memory == number]
        pins = [(b.pinned_at, b.nbytes) for b in mine if b.pinned_at is not None]
        ends = [offset + nbytes for offset, nbytes in (*memory.reserved, *pins)]
        endless = sum(b.nbytes + b.alignment for b in mine) + sum(ends)
        return LinearScan(memory.capacity_nbytes or endless + 1, memory.reserved, pins)

    def _priority_of(self, buffer: int) -> tuple[int, int, int]:
        graph = self._graph
        writers = [at for at in graph.instance.users[buffer] if self._brings(at, buffer)]
        fan_out = sum(len(graph.consumers[at]) for at in writers)
        return -fan_out, -graph.instance.buffers[buffer].nbytes, buffer

    def _brings(self, step: int, buffer: int) -> bool:
        """Whether a step writes or loads a buffer."""
        found = self._graph.instance.steps[step]
        return buffer in found.changes or found.is_load

    def missing(self, buffers: Iterable[int]) -> set[int]:
        """Those of the buffers that are not in memory, nor wanted."""
        return {each for each in buffers if each not in self.alive}

    def fits(self, more: Iterable[int]) -> bool:
        """Whether more buffers fit beside those that are wanted already."""
        return all(
            scan.fits(mine)
            for scan, mine in zip(self._scans, self._requests({*self._wanted, *more}), strict=True)
            if mine
        )

    def want(self, buffer: int) -> Home:
        """Counts a buffer as in memory; `allocate` gives it an address."""
        home = self.alive[buffer] = self._wanted[buffer] = Home(buffer=buffer)
        self.spilled.discard(buffer)
        return home

    def allocate(self) -> bool:
        """Gives what is wanted its addresses; whether there were any."""
        for scan, mine in zip(self._scans, self._requests(self._wanted), strict=True):
            placed = scan.allocate_all(mine) if mine else ()
            if placed is None:
                return False
            for each in placed:
                home = self._wanted[int(each.request.name)]
                home.offset = each.offset
                self._schedule.homes.append(home)
        self._wanted.clear()
        return True

    def release(self, buffer: int) -> None:
        """A buffer goes; its bytes are free."""
        del self.alive[buffer]
        self._scans[self._graph.instance.buffers[buffer].memory].free(str(buffer))

    def _requests(self, buffers: Iterable[int]) -> list[list[BufferRequest]]:
        """What to ask of each memory, in the order of allocation."""
        requests: list[list[BufferRequest]] = [[] for _ in self._scans]
        for each in sorted(buffers, key=self._priority.__getitem__):
            its = self._graph.instance.buffers[each]
            requests[its.memory].append(
                BufferRequest(str(each), its.nbytes, its.alignment, its.pinned_at)
            )
        return requests
