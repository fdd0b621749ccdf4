"""A memory plan as a page: bounds, engines over time, addresses over time, what moved and why."""

from __future__ import annotations

from collections import Counter

from tilefarm.plural import plural
from tilefarm.printable import page_text as escape

from driver.memory import Plan, Problem, Reason, TransferKind
from driver.memory.activities import Activity, Lead, activities, busy_ticks, lanes, leads
from driver.report.html import html_page
from driver.report.memory_gantt import memory_gantt
from driver.report.memory_map import memory_map
from driver.report.shown_plan import ShownPlan
from driver.report.tables import table

_MOST_ROWS = 200
_MOST_LEADS = 12


def memory_page(shown: tuple[ShownPlan, ...]) -> str:
    """One plan, or several of which each chart has the same scale, one below the other."""
    end = max(each.plan.makespan_ticks for each in shown)
    title = escape(" and ".join(each.name for each in shown))
    body = f"<h1>{title}</h1>"
    for each in shown:
        if len(shown) > 1:
            body += f"<h1>{escape(each.name)}</h1>"
        body += _plan(each, end)
    return html_page(title, body)


def _plan(shown: ShownPlan, end: int) -> str:
    problem, plan = shown.problem, shown.plan
    done = activities(problem, plan)
    body = f"<p class=sub>{escape(plan.method)}</p><div class=tiles>{_tiles(plan)}</div>"
    body += f"<h2>Engines</h2>{memory_gantt(done, lanes(problem), end)}"
    body += engine_table(problem, done, plan.makespan_ticks)
    for memory in problem.memories:
        mine = [r for r in plan.residencies if r.memory == memory.name]
        if mine:
            body += f"<h2>Memory {escape(memory.name)}</h2>"
            body += memory_map(memory, mine, plan.bound_nbytes(memory.name), end)
    body += f"<h2>Bounds</h2>{_bound_table(plan)}"
    if plan.transfers:
        body += f"<h2>What leaves and comes back</h2>{_moved_table(plan)}"
    if ready := leads(problem, plan):
        body += f"<h2>How early buffers are brought</h2>{_lead_table(ready)}"
    return body


def _tiles(plan: Plan) -> str:
    tiles = [
        (f"{plan.makespan_ticks:,}", "ticks"),
        (f"{plan.gap:.3f}", f"of the bound, {plan.bound_ticks:,}"),
        (f"{plan.extra_nbytes:,}", "bytes moved besides"),
        *((f"{nbytes:,}", f"bytes of {name}") for name, nbytes in plan.peaks),
    ]
    return "".join(
        f"<div class=tile><b>{escape(value)}</b><span>{escape(words)}</span></div>"
        for value, words in tiles
    )


def engine_table(problem: Problem, done: tuple[Activity, ...], end: int) -> str:
    """How busy each engine is, and how much of that is critical."""
    rows = []
    for lane in lanes(problem):
        mine = [each for each in done if each.lane == lane]
        busy = busy_ticks(done, lane)
        critical = sum(each.end - each.begin for each in mine if each.is_critical)
        rows.append(
            (
                escape(lane),
                str(len(mine)),
                str(busy),
                f"{busy / end:.0%}" if end else "",
                str(critical),
            )
        )
    return table(("engine", "activities", "busy ticks", "share", "on the critical path"), rows)


def _bound_table(plan: Plan) -> str:
    rows = [
        (
            escape(f"{bound.name} {bound.memory}".strip()),
            str(bound.ticks or ""),
            str(bound.nbytes if bound.memory else bound.extra_nbytes or ""),
        )
        for bound in plan.bounds
    ]
    return table(("no plan is below", "ticks", "bytes"), rows)


def _moved_table(plan: Plan) -> str:
    kinds = Counter((each.buffer, each.kind) for each in plan.transfers)
    stays = {
        buffer: [r for r in plan.residencies if r.buffer == buffer and r.reason != Reason.SAVED]
        for buffer, _ in kinds
    }
    rows = [
        (
            escape(buffer),
            str(stays[buffer][0].nbytes),
            str(kinds[buffer, TransferKind.SAVE]),
            str(kinds[buffer, TransferKind.READ]),
            escape(", ".join(f"{r.begin}-{r.end} at {r.offset}" for r in stays[buffer][:4])),
        )
        for buffer in list(stays)[:_MOST_ROWS]
    ]
    more = len(stays) - len(rows)
    words = f"<p class=sub>and {plural(more, 'buffer')} more</p>" if more else ""
    return table(("buffer", "bytes", "saved", "read", "in memory, ticks"), rows) + words


def _lead_table(ready: tuple[Lead, ...]) -> str:
    """A histogram: so many buffers lie ready for so long before they are used."""
    most = max(lead.ticks for lead in ready)
    width = -(-(most + 1) // _MOST_LEADS)
    counts = Counter(lead.ticks // width for lead in ready)
    rows = []
    for slot in range(most // width + 1):
        share = counts[slot] / len(ready)
        bar = f'<span class=bar><i style="width:{100 * share:.0f}%"></i></span>'
        span = f"{slot * width}" if width == 1 else f"{slot * width} to {(slot + 1) * width - 1}"
        rows.append((span, f"{bar} {counts[slot]}"))
    return table(("ticks before the first use", "buffers"), rows)
