"""A compile as a page: its steps, then the run's cycles by cause and its timeline."""

from __future__ import annotations

from typing import Final

from tilefarm.printable import page_text as escape
from tilefarm.workload import Workload

from driver.commands.compile_steps.steps import CompileSteps, Shown
from driver.program.vta.cycle_breakdown import CAUSES
from driver.program.vta.stream import Stream
from driver.report.steps_page import PageStep, steps_page
from driver.report.summary import KernelTimeline
from driver.report.tables import count
from driver.report.timeline_chart import timeline_chart

_GROUPS: Final = {
    "nest": "tensor expressions",
    "trace": "schedule",
    "pass": "passes",
    "llvm": "code",
    "stream": "code",
}

_SHOWN_INSTRUCTIONS: Final = 400
"""Of a longer stream the page has so many from its beginning and from its end: a plain schedule of
a large layer has hundreds of thousands, which no browser shows."""


def page_of(made: CompileSteps, workload: Workload, schedule: str, stream: Stream | None) -> str:
    """The page of one compile; a refusal is its last step."""
    steps = [_step(shown, workload, stream) for shown in made.shown]
    if made.refusal is not None:
        why = str(made.refusal)
        steps.append(
            PageStep(group="refused", name="refused", caption=why, text=why, follows=False)
        )
    return steps_page(workload.name, f"schedule: {schedule}", steps)


def _step(shown: Shown, workload: Workload, stream: Stream | None) -> PageStep:
    name = f"{shown.name} {shown.caption}" if shown.kind == "trace" else shown.name
    above = _cycles(workload, stream) if stream is not None and shown.kind == "stream" else ""
    return PageStep(
        group=_GROUPS[shown.kind],
        name=name,
        caption=shown.caption,
        text=_both_ends(shown.text) if shown.kind == "stream" else shown.text,
        follows=shown.kind in ("trace", "pass"),
        above=above,
    )


def _both_ends(text: str) -> str:
    """The first and last instructions of a stream, a line in between if there are more."""
    lines = text.splitlines()
    left_out = len(lines) - 2 * _SHOWN_INSTRUCTIONS
    if left_out <= 0:
        return text
    note = f"... {count(left_out)} instructions are left out here: --after stream prints them all"
    return "\n".join([*lines[:_SHOWN_INSTRUCTIONS], note, *lines[-_SHOWN_INSTRUCTIONS:]])


def _cycles(workload: Workload, stream: Stream) -> str:
    """Cycles by cause as a table, and the timeline below it."""
    head = "".join(f"<th>{cause}</th>" for cause in (*CAUSES, "cycles"))
    values = [*(getattr(stream.spent, cause) for cause in CAUSES), stream.spent.cycles]
    cells = "".join(f"<td>{count(value)}</td>" for value in values)
    chart = timeline_chart(
        KernelTimeline(
            workload=escape(workload.name),
            layer=escape(workload.name),
            cycles=stream.spent.cycles,
            events=stream.timeline,
        )
    )
    return f"<table><tr>{head}</tr><tr>{cells}</tr></table>{chart}"
