"""Schedules with transfers: small ones by a proven optimum, and how long large ones take."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable, Iterator
from statistics import geometric_mean
from typing import Final

from driver.benchmarks.figures import Figure
from driver.benchmarks.memory.scratchpad_graphs import GraphKind, scratchpad_graph
from driver.memory import Infeasible, Mode, Plan, Problem, plan

GRAPHS: Final = 50
_COMPUTATIONS: Final = (4, 9)
_CAPACITIES: Final = (1_200_000, 1_474_560)
_SOLVER_SECONDS: Final = 20
_MEAN, _WORST = 1.03, 1.10
"""Makespans by the optimum; those of npu_compiler's scheduler are 1.26 and 1.71 on such graphs."""
LARGE: Final = {1_000: 1.0, 10_000: 20.0}
"""Seconds for so many operations."""
_LARGE_CAPACITY_NBYTES: Final = 2_500_000


def figures(clock: Callable[[], float]) -> list[Figure]:
    """Makespans by the optimum where OR-Tools proves one, and seconds."""
    return [*_by_the_optimum(), *_seconds(clock)]


def small_graphs(count: int) -> Iterator[Problem]:
    """So many graphs that have a plan, each computation's order free in every other one."""
    seed = found = 0
    while found < count:
        rng = random.Random(seed)
        kind = GraphKind(capacity_nbytes=rng.choice(_CAPACITIES), is_free=bool(seed % 2))
        problem = scratchpad_graph(seed, rng.randint(*_COMPUTATIONS), kind)
        seed += 1
        if not isinstance(plan(problem, mode=Mode.FEASIBLE), Infeasible):
            found += 1
            yield problem


def _by_the_optimum() -> Iterator[Figure]:
    if importlib.util.find_spec("ortools") is None:
        yield Figure(name="by the optimum: OR-Tools is not installed", value=0, unit="graphs")
        return
    best, feasible = [], []
    for problem in small_graphs(GRAPHS):
        exact = plan(problem, mode=Mode.EXACT, seconds=_SOLVER_SECONDS)
        assert isinstance(exact, Plan)
        if exact.gap == 1.0:
            best.append(_ticks(plan(problem)) / exact.makespan_ticks)
            feasible.append(_ticks(plan(problem, mode=Mode.FEASIBLE)) / exact.makespan_ticks)
    yield Figure(name=f"graphs with a proven optimum, of {GRAPHS}", value=len(best), unit="graphs")
    yield Figure(name="best by it, mean", value=geometric_mean(best), unit="x", goal=_MEAN)
    yield Figure(name="best by it, worst", value=max(best), unit="x", goal=_WORST)
    yield Figure(name="feasible by it, mean", value=geometric_mean(feasible), unit="x")
    yield Figure(name="feasible by it, worst", value=max(feasible), unit="x")


def _ticks(found: Plan | Infeasible) -> int:
    assert isinstance(found, Plan)
    return found.makespan_ticks


def _seconds(clock: Callable[[], float]) -> Iterator[Figure]:
    for operations, goal in LARGE.items():
        problem = of_operations(operations)
        began = clock()
        _ticks(plan(problem))
        yield Figure(name=f"{operations} operations", value=clock() - began, unit="s", goal=goal)


def of_operations(count: int) -> Problem:
    """A graph with as many computations as have about so many operations with their loads."""
    kind = GraphKind(capacity_nbytes=_LARGE_CAPACITY_NBYTES)
    return scratchpad_graph(1, count * 100 // 193, kind)
