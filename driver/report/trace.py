"""Chrome trace events, for ui.perfetto.dev: a run across all its processes, and a kernel's cycles.

Processes are the driver, each compile worker, each server of the farm with its runner, and the
kernel. Arrows lead from a candidate's compile to its run. The format is described at
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tilefarm.digest import canonical_json

from driver.report.aligned import AlignedSpan, free_lane
from driver.report.summary import KernelTimeline, RunSummary
from driver.run_events import Span

_DRIVER: Final = "driver"
_ARROW_MICROSECONDS: Final = 1.0
_FINEST_MICROSECONDS: Final = 1.0
"""A double of seconds since 1970 is no finer than 0.24 us."""

Event = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    """One bar: times in microseconds; `candidate` ties bars of one candidate together."""

    process: str
    lane: str
    name: str
    category: str
    begin: float
    end: float
    candidate: str = ""


def chrome_trace(summary: RunSummary, calls: Sequence[AlignedSpan] = ()) -> str:
    """The run as a JSON document; `calls` are what the farm's servers told of theirs.

    Microseconds of the run are microseconds; a cycle of the kernel is shown as one microsecond.
    """
    driver = map(_driver_slice, summary.spans)
    slices = [*_side_by_side(driver), *_server_slices(calls)]
    numbers = _Numbers()
    events = [_complete(numbers, each) for each in slices]
    events += _arrows(numbers, slices)
    if summary.timeline:
        events += [_complete(numbers, each) for each in _kernel_slices(summary.timeline)]
    document = {"traceEvents": [*numbers.names(), *events], "displayTimeUnit": "ms"}
    return canonical_json(document)


def _side_by_side(slices: Iterable[_Slice]) -> Iterator[_Slice]:
    """Slices of a lane without overlaps that are finer than wall seconds can tell."""
    last: dict[tuple[str, str], _Slice] = {}
    for each in sorted(slices, key=lambda each: (each.begin, -each.end)):
        lane = each.process, each.lane
        before = last.get(lane)
        if before is not None:
            tangled = before.end - _FINEST_MICROSECONDS < each.begin < before.end < each.end
            yield replace(before, end=max(before.begin, each.begin)) if tangled else before
        last[lane] = each
    yield from last.values()


def _driver_slice(span: Span) -> _Slice:
    """A span of the driver's: compile workers are processes, devices are lanes of the driver."""
    compiling = span.kind == "compile"
    return _Slice(
        process=span.lane if compiling else _DRIVER,
        lane=_driver_lane(span),
        name=span.label if span.label == span.kind else f"{span.kind} {span.label}",
        category=span.kind,
        begin=span.begin_seconds * 1e6,
        end=span.end_seconds * 1e6,
        candidate=span.candidate,
    )


def _driver_lane(span: Span) -> str:
    if span.kind == "compile":
        return "jobs"
    if span.lane == _DRIVER:
        return "tuner" if span.kind == "propose" else "steps"
    return f"device {span.lane}"


def _server_slices(calls: Sequence[AlignedSpan]) -> Iterator[_Slice]:
    """Calls side by side where they overlap, each with its phases in its lane."""
    ends: dict[str, list[float]] = defaultdict(list)
    for call in sorted(calls, key=lambda call: (call.process, call.begin_seconds)):
        lane = free_lane(ends[call.process], call.begin_seconds, call.end_seconds)
        for each in (call, *call.inner):
            yield _Slice(
                process=each.process,
                lane=f"calls {lane + 1}",
                name=each.name,
                category=call.name,
                begin=each.begin_seconds * 1e6,
                end=each.end_seconds * 1e6,
                candidate=each.candidate,
            )


def _kernel_slices(timeline: KernelTimeline) -> Iterator[_Slice]:
    for event in timeline.events:
        yield _Slice(
            process=f"{timeline.layer} (1 us = 1 cycle)",
            lane=event.module,
            name=event.name,
            category="instruction",
            begin=event.begin_cycle,
            end=event.end_cycle,
        )


class _Numbers:
    """Numbers of processes and lanes, in the order in which they are first asked for."""

    def __init__(self) -> None:
        self._processes: dict[str, int] = {}
        self._lanes: dict[tuple[str, str], int] = {}

    def of(self, each: _Slice) -> tuple[int, int]:
        """Process and lane."""
        process = self._processes.setdefault(each.process, len(self._processes) + 1)
        lane = self._lanes.setdefault((each.process, each.lane), len(self._lanes) + 1)
        return process, lane

    def names(self) -> Iterator[Event]:
        """The events that name them all."""
        for name, process in self._processes.items():
            yield _name("process_name", process, 0, name)
        for (name, lane), number in self._lanes.items():
            yield _name("thread_name", self._processes[name], number, lane)


def _name(kind: str, process: int, lane: int, name: str) -> Event:
    return {"ph": "M", "pid": process, "tid": lane, "name": kind, "args": {"name": name}}


def _complete(numbers: _Numbers, each: _Slice) -> Event:
    """One bar. Its ends are rounded, not its length: what abuts does so to the nanosecond."""
    process, lane = numbers.of(each)
    begin, end = _nanoseconds(each.begin), _nanoseconds(each.end)
    event: Event = {
        "ph": "X",
        "pid": process,
        "tid": lane,
        "name": each.name,
        "cat": each.category,
        "ts": begin / 1000,
        "dur": (end - begin) / 1000,
    }
    return event | ({"args": {"candidate": each.candidate}} if each.candidate else {})


def _arrows(numbers: _Numbers, slices: Iterable[_Slice]) -> Iterator[Event]:
    """From the compile of each candidate to each of its runs on a device."""
    compiled: dict[str, _Slice] = {}
    number = 0
    for each in sorted(slices, key=lambda each: each.begin):
        if not each.candidate:
            continue
        if each.category == "compile":
            compiled[each.candidate] = each
        elif each.category == "run" and each.candidate in compiled:
            number += 1
            start = compiled[each.candidate]
            leave = max(start.begin, start.end - _ARROW_MICROSECONDS)
            yield _arrow(numbers, "s", number, start, leave)
            yield _arrow(numbers, "f", number, each, each.begin) | {"bp": "e"}


def _arrow(numbers: _Numbers, kind: str, number: int, each: _Slice, at: float) -> Event:
    process, lane = numbers.of(each)
    return {
        "ph": kind,
        "id": number,
        "pid": process,
        "tid": lane,
        "name": "candidate",
        "cat": "candidate",
        "ts": _nanoseconds(at) / 1000,
    }


def _nanoseconds(microseconds: float) -> int:
    return round(microseconds * 1000)
