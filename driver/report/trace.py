"""Chrome trace events, for ui.perfetto.dev: the farm's seconds and a kernel's cycles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilefarm.digest import canonical_json

from driver.report.summary import KernelTimeline, RunSummary, Span

_FARM, _KERNEL = 1, 2


def chrome_trace(summary: RunSummary) -> str:
    """The run as a JSON document of complete events: process 1 is the farm, process 2 the kernel.

    Microseconds of the farm are microseconds; a cycle of the kernel is shown as one microsecond.
    """
    events = [_name(_FARM, "farm"), *_span_events(summary.spans)]
    if summary.timeline:
        events += [_name(_KERNEL, f"{summary.timeline.layer} (1 us = 1 cycle)")]
        events += _kernel_events(summary.timeline)
    return canonical_json({"traceEvents": events, "displayTimeUnit": "ms"})


def _span_events(spans: Iterable[Span]) -> list[dict[str, Any]]:
    return [
        _event(
            _FARM, s.lane, f"{s.kind} {s.label}", s.kind, s.begin_seconds * 1e6, s.end_seconds * 1e6
        )
        for s in spans
    ]


def _kernel_events(timeline: KernelTimeline) -> list[dict[str, Any]]:
    return [
        _event(_KERNEL, e.module, e.name, "instruction", e.begin_cycle, e.end_cycle)
        for e in timeline.events
    ]


def _event(
    process: int, lane: str, name: str, category: str, begin: float, end: float
) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": process,
        "tid": lane,
        "name": name,
        "cat": category,
        "ts": begin,
        "dur": end - begin,
    }


def _name(process: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}}
