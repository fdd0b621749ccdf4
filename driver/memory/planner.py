"""From a problem to a plan, in one of three modes.

`feasible` is the published list scheduler, which allocates addresses as it goes; `best` searches
schedules, then addresses for them, or schedules that give addresses as they go, and takes the
feasible plan where it found none better; `exact` asks a solver whether there is a better one still.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from tilefarm.errors import UserError

from driver.memory.bounds import bounds_of
from driver.memory.exact import solved
from driver.memory.feasible.planner import feasible_plan
from driver.memory.instance import Instance, instance_of
from driver.memory.order import least_peak_sequence
from driver.memory.places import placed
from driver.memory.plan import Bound, Infeasible, Plan
from driver.memory.planned import plan_of
from driver.memory.problem import Problem
from driver.memory.schedule import Found, Schedule, Token
from driver.memory.search import decoded, searched
from driver.memory.soundness import require_sound
from driver.memory.waits import with_reuse_edges

EFFORT: Final = 1_000_000
"""Operations and transfers that are decoded for a room: in a tenth of a second."""
_MOST_TRIES: Final = 30_000
"""Sequences of a small problem: more of them hardly ever find anything."""
_FAVOURITES: Final = 2
"""Schedules of one room with which the search of the next smaller one begins."""
_MANY: Final = 300
"""Steps beyond which schedules that count bytes alone hardly ever have addresses in a tight memory,
and looking for some takes long: the best one is asked, and others give addresses as they go.
"""
_LEAST_SECONDS: Final = 1.0
"""For addresses, however late it is: without them there is no plan."""
_ROOMS: Final = (1.0, 0.97, 0.94, 0.9, 0.85, 0.8)
"""Shares of a memory within which schedules are searched, as addresses are found for none above."""


class Mode(StrEnum):
    """How a plan is found."""

    FEASIBLE = "feasible"
    BEST = "best"
    EXACT = "exact"


def plan(
    problem: Problem,
    *,
    mode: Mode = Mode.BEST,
    seed: int = 0,
    effort: int = EFFORT,
    seconds: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> Plan | Infeasible:
    """The shortest plan that was found, of those the one that moves the fewest bytes besides, of
    those the one with the smallest peak. `validate` proves it from scratch.

    Same problem, mode, seed and effort, same plan, unless `seconds` end the search; then
    `Plan.method` says so.

    Raises:
        UserError: the problem contradicts itself.
        SettingsError: the mode `exact` without its solver.
    """
    deadline = clock() + seconds
    require_sound(problem)
    instance = instance_of(problem)
    if refused := _demand(problem, instance):
        return refused
    bounds = tuple(bounds_of(problem, instance))
    search = _Search(problem, instance, seed, left=lambda: max(0.0, deadline - clock()))
    plans = [*search.listed()]
    if mode is not Mode.FEASIBLE:
        plans = [*search.best(effort, bound=max((b.ticks for b in bounds), default=0)), *plans]
    if mode is Mode.EXACT:
        exact, bound = search.exact(plans)
        plans, bounds = [*plans, *exact], (*bounds, *bound)
    if not plans:
        return search.nowhere()
    found = min(plans, key=_cost)
    return with_reuse_edges(problem, replace(found, bounds=(*bounds, *found.bounds)))


def _cost(found: Plan) -> tuple[int, int, int]:
    return found.makespan_ticks, found.extra_nbytes, sum(nbytes for _, nbytes in found.peaks)


@dataclass(slots=True)
class _Search:
    """Plans of one problem; `left` says how many seconds there are."""

    problem: Problem
    instance: Instance
    seed: int
    left: Callable[[], float]
    _closest: Schedule | None = None

    def is_over(self) -> bool:
        return not self.left()

    def listed(self) -> Iterator[Plan]:
        """That of the list scheduler; where it did not come to an end, one that needs no time."""
        listed = feasible_plan(self.problem, self.instance, self.is_over)
        if listed is not None:
            yield listed
        elif self.is_over():
            yield from self._placed_at_once((), bound=0, tries=0)

    def best(self, effort: int, bound: int) -> Iterator[Plan]:
        """Of the schedules that were found for some room, the best one that has addresses; and
        where that is not the best of all, the best of those that give addresses as they go.
        """
        tries = min(_MOST_TRIES, effort // max(1, len(self.instance.steps)))
        least = least_peak_sequence(self.instance, most_states=effort, is_over=self.is_over)
        favourites: list[Sequence[Token]] = [least] if least else []
        is_large = len(self.instance.steps) > _MANY
        best: int | None = None
        for share in _ROOMS:
            found = self._searched(favourites, share, bound, tries)
            favourites = [each.tokens for each in found.best[:_FAVOURITES]] or favourites
            if best is not None and found.best and found.best[0].makespan >= best:
                return
            for each in found.best[: 1 if is_large else None]:
                self._closest = self._closest or each
                if (made := self._plan(each, _method(found, share))) is not None:
                    yield made
                    return
            if not any(self.instance.capacities):
                return
            if best is None:
                for made in self._placed_at_once(favourites, bound, tries):
                    best = made.makespan_ticks
                    yield made
            if best is not None and is_large:
                return

    def _searched(
        self, favourites: Sequence[Sequence[Token]], share: float, bound: int, tries: int
    ) -> Found:
        room = tuple(int(share * capacity) for capacity in self.instance.capacities)
        is_late = self.is_over()
        found = searched(
            replace(self.instance, capacities=room),
            favourites,
            is_placed=False,
            bound=bound,
            tries=tries,
            seed=self.seed,
            seconds=self.left(),
        )
        return replace(found, is_cut_short=found.is_cut_short or is_late)

    def _placed_at_once(
        self, favourites: Sequence[Sequence[Token]], bound: int, tries: int
    ) -> Iterator[Plan]:
        found = searched(
            self.instance,
            favourites,
            is_placed=True,
            bound=bound,
            tries=tries,
            seed=self.seed,
            seconds=self.left(),
        )
        for each in found.best[:1]:
            if (made := self._plan(each, _method(found))) is not None:
                yield made

    def exact(self, plans: Sequence[Plan]) -> tuple[list[Plan], list[Bound]]:
        """The plan of a solver, if it has one with addresses, and the bound that it proved."""
        longest = sum(step.ticks for step in self.instance.steps)
        most = min((each.makespan_ticks for each in plans), default=longest)
        found = solved(self.instance, at_most=most, seconds=max(1.0, self.left()), seed=self.seed)
        bounds = (
            [Bound(name="constraint model", ticks=found.bound_ticks)] if found.bound_ticks else []
        )
        words = "constraint model" + ("" if found.is_optimal else ", ended by its time limit")
        made = None if found.best is None else self._plan(found.best, words)
        return ([] if made is None else [made]), bounds

    def _plan(self, found: Schedule, method: str) -> Plan | None:
        """The plan of a schedule that has addresses."""
        seconds = max(_LEAST_SECONDS, self.left())
        places = placed(self.problem, self.instance, found, seed=self.seed, seconds=seconds)
        if places is None:
            return None
        return plan_of(self.problem, self.instance, found, places, f"{method}; {places.method}")

    def nowhere(self) -> Infeasible:
        """What the plan that comes closest would take."""
        problem, instance = self.problem, self.instance
        endless = replace(instance, capacities=(0,) * len(instance.capacities))
        closest = self._closest or decoded(endless, instance.arranged(lambda at: at))
        assert closest is not None
        places = placed(
            problem, instance, closest, seed=self.seed, seconds=_LEAST_SECONDS, is_bounded=False
        )
        if places is None:
            raise UserError(
                "no plan was found in which pinned buffers do not want the same bytes at once",
                "other offsets to pin them at",
            )
        peaks = dict(places.peaks)
        over = [m for m in problem.memories if 0 < m.capacity_nbytes < peaks.get(m.name, 0)]
        memory = over[0] if over else problem.memories[0]
        return Infeasible(
            op="",
            memory=memory.name,
            demand_nbytes=peaks.get(memory.name, 0),
            capacity_nbytes=memory.capacity_nbytes,
        )


def _method(found: Found, share: float = 1) -> str:
    words = [f"best of {found.decoded} schedules"]
    if share < 1:
        words.append(f"in {share:.0%} of the room")
    if found.is_cut_short:
        words.append("ended by its time limit")
    return "; ".join(words)


def _demand(problem: Problem, instance: Instance) -> Infeasible | None:
    """The first operation that needs more of a memory than that has."""
    for step, op in zip(instance.steps, problem.ops, strict=False):
        need = [0] * len(instance.capacities)
        taken = dict(step.in_place)
        for each in {*step.uses}.difference(taken.values()):
            need[instance.buffers[each].memory] += instance.buffers[each].nbytes
        for memory, capacity, nbytes in zip(
            problem.memories, instance.capacities, need, strict=True
        ):
            if capacity and nbytes > capacity:
                return Infeasible(
                    op=op.name,
                    memory=memory.name,
                    demand_nbytes=nbytes,
                    capacity_nbytes=capacity,
                )
    return None
