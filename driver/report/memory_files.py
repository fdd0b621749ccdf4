"""A memory plan for other programs: Chrome trace events, and a table as CSV."""

from __future__ import annotations

import csv
import io

from tilefarm.digest import canonical_json

from driver.memory import Plan, Problem
from driver.memory.activities import activities, lanes


def plan_trace(problem: Problem, plan: Plan) -> str:
    """For ui.perfetto.dev: a thread an engine; a tick is shown as a microsecond."""
    numbers = {lane: at for at, lane in enumerate(lanes(problem))}
    events: list[dict[str, object]] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "plan (1 us = 1 tick)"}}
    ]
    events += [
        {"ph": "M", "pid": 1, "tid": at, "name": "thread_name", "args": {"name": lane}}
        for lane, at in numbers.items()
    ]
    events += [
        {
            "ph": "X",
            "pid": 1,
            "tid": numbers[each.lane],
            "name": each.name,
            "cat": each.kind,
            "ts": each.begin,
            "dur": each.end - each.begin,
        }
        for each in activities(problem, plan)
    ]
    return canonical_json({"traceEvents": events, "displayTimeUnit": "ms"})


def plan_csv(plan: Plan) -> str:
    """A row a residency, in MiniMalloc's columns and some more."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("id", "lower", "upper", "size", "offset", "memory", "reason"))
    for each in plan.residencies:
        rows.writerow(
            (each.buffer, each.begin, each.end, each.nbytes, each.offset, each.memory, each.reason)
        )
    return text.getvalue()
