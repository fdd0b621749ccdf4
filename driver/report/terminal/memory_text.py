"""A memory plan in a few lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilefarm.plural import plural

from driver.memory import Plan, Problem, replay, sampled_ticks
from driver.memory.activities import activities, busy_ticks, lanes
from driver.report.terminal.text_table import text_table

_RUNS: Final = 200
"""Enough that the tenth and the ninetieth percentile rest on twenty runs each."""
_MOST_NAMES: Final = 5


def plan_lines(problem: Problem, plan: Plan, *, seed: int = 0) -> Iterator[str]:
    """What was planned, how good it is, what engines and memories are used for, and what becomes of
    it as durations vary, where there are samples of them.
    """
    yield f"{plural(len(problem.ops), 'operation')}, {plural(len(problem.buffers), 'buffer')}"
    yield (
        f"{plan.makespan_ticks} ticks, {plan.gap:.3f} times the bound of {plan.bound_ticks}; "
        f"{plural(plan.extra_nbytes, 'byte')} moved besides what must be"
    )
    yield plan.method
    yield ""
    done = activities(problem, plan)
    rows = []
    for lane in lanes(problem):
        mine = [each for each in done if each.lane == lane]
        busy = busy_ticks(done, lane)
        share = busy / plan.makespan_ticks if plan.makespan_ticks else 0.0
        critical = sum(each.end - each.begin for each in mine if each.is_critical)
        rows.append((lane, str(len(mine)), str(busy), f"{share:.0%}", str(critical)))
    yield from text_table(("engine", "activities", "busy ticks", "share", "critical"), rows)
    yield ""
    yield from text_table(
        ("memory", "peak bytes", "bound", "capacity", "residencies"),
        [
            (
                memory.name,
                str(plan.peak_nbytes(memory.name)),
                str(plan.bound_nbytes(memory.name)),
                str(memory.capacity_nbytes) if memory.capacity_nbytes else "-",
                str(sum(r.memory == memory.name for r in plan.residencies)),
            )
            for memory in problem.memories
        ],
    )
    if any(len(set(op.samples)) > 1 for op in problem.ops):
        yield ""
        yield from _replay_lines(problem, plan, seed)


def _replay_lines(problem: Problem, plan: Plan, seed: int) -> Iterator[str]:
    said = replay(problem, plan, [*sampled_ticks(problem, _RUNS, seed)])
    yield (
        f"as durations vary: {said.median_ticks} ticks in the median of {said.runs} runs, "
        f"{said.p10_ticks} to {said.p90_ticks} from p10 to p90"
    )
    most = [f"{name} {share:.0%}" for name, share in said.criticality[:_MOST_NAMES]]
    yield f"critical in most runs: {', '.join(most)}"
