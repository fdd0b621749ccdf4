"""A run's plan of engines and memory: who does what when, and what was predicted of it."""

from __future__ import annotations

from typing import Final

from tilefarm.printable import page_text as escape

from driver.memory.activities import activities, lanes
from driver.report.cost import microseconds
from driver.report.memory_gantt import memory_gantt
from driver.report.memory_map import memory_map
from driver.report.memory_page import engine_table
from driver.report.shown_plan import NetworkPlans, ShownPlan
from driver.report.step_times import ComparedTimes
from driver.report.tables import table

_MOST_ROWS: Final = 60


def plans_section(plans: NetworkPlans) -> str:
    """Charts of one sample, of several where engines work beside one another, and a table of times.

    Names are escaped: models are untrusted text.
    """
    body = _sample(plans.alone)
    if plans.in_flight is not None:
        body += _sample(plans.in_flight) + _memory(plans.in_flight)
    return body + _times(plans.times)


def _sample(shown: ShownPlan) -> str:
    done = activities(shown.problem, shown.plan)
    end = shown.plan.makespan_ticks
    words = f"{microseconds(1e-9 * end)}; a tick is a nanosecond"
    return (
        f"<h3>{escape(shown.name)}</h3><p class=sub>{escape(words)}</p>"
        f"{memory_gantt(done, lanes(shown.problem), end)}{engine_table(shown.problem, done, end)}"
    )


def _memory(shown: ShownPlan) -> str:
    memory = shown.problem.memories[0]
    bound = shown.plan.bound_nbytes(memory.name)
    words = f"{shown.plan.peak_nbytes(memory.name):,} bytes; {bound:,} live at once"
    chart = memory_map(memory, shown.plan.residencies, bound, shown.plan.makespan_ticks)
    return f"<p class=sub>{escape(words)}</p>{chart}"


def _times(times: ComparedTimes) -> str:
    if not times.steps:
        return ""
    steps = sorted(times.steps, key=lambda each: -abs(each.measured.median - each.predicted.median))
    rows = [
        (
            escape(each.name),
            microseconds(1e-9 * each.predicted.median),
            microseconds(1e-9 * each.measured.median),
            f"{each.off:+.1%}",
            escape(each.predicted.basis.value),
            "critical" if each.is_critical else "",
        )
        for each in steps[:_MOST_ROWS]
    ]
    refitted = "; critical steps were off, so the plan rests on measured times"
    words = (
        "predicted: the best trial of a kernel, or a model; measured: as a layer of the program"
        f"{refitted if times.is_refitted else ''}"
    )
    head = ("step", "predicted", "measured", "off", "predicted by", "")
    return f"<h3>Predicted and measured</h3><p class=sub>{escape(words)}</p>{table(head, rows)}"
