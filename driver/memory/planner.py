"""From a problem to a plan, in one of three modes.

`feasible` is the published list scheduler, which allocates addresses as it goes; `best` searches
schedules, then addresses for them, and takes the feasible plan where it found none better; `exact`
asks a solver whether there is a better one still.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from tilefarm.errors import UserError

from driver.memory.best.decoder import Decoded, Move, decoded, move_of
from driver.memory.best.search import Found, first_sequences, searched
from driver.memory.bounds import makespan_bounds
from driver.memory.exact import solved
from driver.memory.feasible.planner import feasible_plan
from driver.memory.instance import Instance, instance_of
from driver.memory.order import least_peak_sequence
from driver.memory.places import Places, fits, placed
from driver.memory.plan import Bound, Infeasible, Plan, PlannedOp, PlannedTransfer, TransferKind
from driver.memory.problem import Problem
from driver.memory.soundness import require_sound

EFFORT: Final = 100_000
"""Operations and transfers that the search decodes besides its first schedules: about a second."""
_FAVOURITES: Final = 2
"""Schedules of one room with which the search of the next smaller one begins."""
_MANY: Final = 300
"""Steps from which on addresses take so long that they are looked for only a few times a room."""
_FEW: Final = 2
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
    bounds = tuple(makespan_bounds(problem, instance))
    plans = [found for found in [feasible_plan(problem, instance)] if found is not None]
    closest: Places | None = None
    if mode is not Mode.FEASIBLE:
        best, closest = _searched(
            problem, instance, bounds, seed, effort, is_over=lambda: clock() >= deadline
        )
        plans = [best, *plans] if best is not None else plans
    if mode is Mode.EXACT:
        left = max(1.0, deadline - clock())
        exact, bound = _solved(problem, instance, plans, seed, left)
        plans, bounds = [*plans, *exact], (*bounds, *bound)
    if not plans:
        return _nowhere(problem, instance, closest, seed)
    found = min(plans, key=_cost)
    return replace(found, bounds=(*bounds, *found.bounds))


def _cost(found: Plan) -> tuple[int, int, int]:
    return found.makespan_ticks, found.extra_nbytes, sum(nbytes for _, nbytes in found.peaks)


def _searched(
    problem: Problem,
    instance: Instance,
    bounds: Sequence[Bound],
    seed: int,
    effort: int,
    is_over: Callable[[], bool],
) -> tuple[Plan | None, Places | None]:
    """The best schedule that was found and for which addresses were; else the best without."""
    tries = effort // max(1, len(instance.steps))
    least = least_peak_sequence(instance, most_states=effort, is_over=is_over)
    is_late = least is not None and is_over()
    favourites = [least] if least else []
    closest: Places | None = None
    for share in _ROOMS:
        room = tuple(int(share * capacity) for capacity in instance.capacities)
        found = searched(
            replace(instance, capacities=room),
            favourites,
            bound=max((b.ticks for b in bounds), default=0),
            tries=tries if share == 1 else tries // len(_ROOMS),
            seed=seed,
            is_over=is_over,
        )
        favourites = [each.tokens for each in found.best[:_FAVOURITES]] or favourites
        found = replace(found, is_cut_short=found.is_cut_short or is_late)
        for each in found.best[: _FEW if len(instance.steps) > _MANY else None]:
            places = placed(problem, instance, each, seed)
            if places is not None and fits(problem, places):
                made = _plan(problem, instance, each, places, _method(found, share, places))
                return replace(made, bounds=places.bounds), closest
            closest = places if closest is None else closest
        if not any(instance.capacities):
            break
    return None, closest


def _solved(
    problem: Problem, instance: Instance, plans: Sequence[Plan], seed: int, seconds: float
) -> tuple[list[Plan], list[Bound]]:
    """The plan of a solver, if it has one that finds addresses, and the bound that it proved."""
    most = min(
        (each.makespan_ticks for each in plans), default=sum(step.ticks for step in instance.steps)
    )
    found = solved(instance, at_most=most, seconds=seconds, seed=seed)
    bounds = [Bound(name="constraint model", ticks=found.bound_ticks)] if found.bound_ticks else []
    if found.best is None:
        return [], bounds
    places = placed(problem, instance, found.best, seed)
    if places is None or not fits(problem, places):
        return [], bounds
    words = "constraint model" + ("" if found.is_optimal else ", ended by its time limit")
    made = _plan(problem, instance, found.best, places, f"{words}; {places.method}")
    return [replace(made, bounds=places.bounds)], bounds


def _method(found: Found, share: float, places: Places) -> str:
    words = [f"best of {found.decoded} schedules"]
    if share < 1:
        words.append(f"in {share:.0%} of the room")
    if found.is_cut_short:
        words.append("ended by its time limit")
    words.append(places.method)
    return "; ".join(words)


def _demand(problem: Problem, instance: Instance) -> Infeasible | None:
    """The first operation that needs more of a memory than that has."""
    for step, op in zip(instance.steps, problem.ops, strict=False):
        need = [0] * len(instance.capacities)
        for each in step.uses:
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


def _nowhere(problem: Problem, instance: Instance, closest: Places | None, seed: int) -> Infeasible:
    """What the plan that comes closest would take."""
    if closest is None:
        endless = replace(instance, capacities=(0,) * len(instance.capacities))
        free = decoded(endless, first_sequences(endless)[0])
        assert free is not None
        closest = placed(problem, instance, free, seed)
    if closest is None:
        raise UserError(
            "no plan was found in which pinned buffers do not want the same bytes at once",
            "other offsets to pin them at",
        )
    peaks = dict(closest.peaks)
    over = [m for m in problem.memories if 0 < m.capacity_nbytes < peaks.get(m.name, 0)]
    memory = over[0] if over else problem.memories[0]
    return Infeasible(
        op="",
        memory=memory.name,
        demand_nbytes=peaks.get(memory.name, 0),
        capacity_nbytes=memory.capacity_nbytes,
    )


def _plan(
    problem: Problem, instance: Instance, found: Decoded, places: Places, method: str
) -> Plan:
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
        makespan_ticks=found.makespan,
        peaks=places.peaks,
        extra_nbytes=found.extra_nbytes,
        method=method,
    )


def _transfers(problem: Problem, instance: Instance, found: Decoded) -> Iterator[PlannedTransfer]:
    for each in found.actions:
        if 0 <= each.token < instance.operations:
            continue
        if each.token < 0:
            move, buffer = move_of(each.token)
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
