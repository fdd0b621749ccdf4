"""A run's timeline as files of its own: a picture, and a trace for ui.perfetto.dev."""

from __future__ import annotations

from typing import Final

from tilefarm.digest import canonical_json

from driver.report.summary import KernelTimeline
from driver.report.timeline_chart import timeline_chart

_STYLE: Final = (
    "<style>text{font:11px sans-serif;fill:#374151}.tick{fill:#6b7280}.grid{stroke:#e5e7eb}</style>"
)


def picture(timeline: KernelTimeline) -> str:
    """An SVG document with a lane a module."""
    start, body = timeline_chart(timeline).split(">", 1)
    return f"{start}>{_STYLE}{body}\n"


def trace(timeline: KernelTimeline) -> str:
    """Chrome trace events as a JSON document; a cycle is shown as a microsecond."""
    name = {"name": f"{timeline.layer} (1 us = 1 cycle)"}
    events: list[dict[str, object]] = [{"ph": "M", "pid": 1, "name": "process_name", "args": name}]
    events += [
        {
            "ph": "X",
            "pid": 1,
            "tid": event.module,
            "name": event.name,
            "cat": "instruction",
            "ts": event.begin_cycle,
            "dur": event.end_cycle - event.begin_cycle,
        }
        for event in timeline.events
    ]
    return canonical_json({"traceEvents": events, "displayTimeUnit": "ms"})
