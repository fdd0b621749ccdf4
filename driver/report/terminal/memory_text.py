"""A memory plan in a few lines."""

from __future__ import annotations

from collections.abc import Iterator

from tilefarm.plural import plural

from driver.memory import Plan, Problem
from driver.memory.activities import activities, busy_ticks, lanes
from driver.report.terminal.text_table import text_table


def plan_lines(problem: Problem, plan: Plan) -> Iterator[str]:
    """What was planned, how good it is, and what engines and memories are used for."""
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
