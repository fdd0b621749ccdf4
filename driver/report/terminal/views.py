"""Three ways to watch a run: a live table on a terminal, plain lines, and JSON lines."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any, Final, Protocol, Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text
from tilefarm.measurement import DeviceClock
from tilefarm.plural import plural
from tilefarm.printable import printable

from driver.report.cost import gain, microseconds
from driver.report.summary import RunSummary, brief
from driver.report.terminal.comparison_text import comparison_lines
from driver.report.terminal.ended import Ended, Shown
from driver.report.terminal.profile_text import profile_lines
from driver.report.terminal.search_status import SearchStatus, WorkloadLine
from driver.report.terminal.tables import (
    accuracy_table,
    fitting_table,
    number,
    ratio,
    taken,
    workload_table,
)
from driver.run_events import (
    DeviceJoined,
    DeviceLeft,
    Notice,
    SearchBegan,
    Span,
    StepBegan,
    StepEnded,
    TrialEnded,
)

_PLAIN_SECONDS: Final = 5.0
_FURTHER: Final = "\n  "
"""What stands between the lines of a notice; any other newline is text that is not ours."""
_MOST_SHOWN: Final = 2000
"""Characters of a line: a step's outcome names what a network has, and reasons of devices."""
_LIVE_TITLES: Final = ("workload", "count", "trials", "failed", "default", "best", "gain")
_EVENT_NAMES: Final[dict[type, str]] = {
    StepBegan: "step_began",
    StepEnded: "step_ended",
    SearchBegan: "search_began",
    DeviceJoined: "device_joined",
    DeviceLeft: "device_left",
    TrialEnded: "trial",
    Notice: "notice",
}


class View(Protocol):
    """A listener with a begin and an end."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(self, *error: object) -> None:
        """Leave the terminal as it was."""
        ...

    def __call__(self, event: Shown | Span) -> None:
        """Show one event."""
        ...


def view_for(stream: TextIO, *, as_json: bool) -> View:
    """The view that suits the stream."""
    if as_json:
        return JsonLines(stream)
    if stream.isatty():
        return LiveTable(Console(file=stream))
    return PlainLines(stream)


class JsonLines:
    """One JSON document a line: each event, then the summary."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.flush()

    def __call__(self, event: Shown | Span) -> None:
        if isinstance(event, Span):
            return
        if isinstance(event, Ended):
            document: dict[str, Any] = {
                "event": "summary",
                **brief(event.summary),
                "paths": dict(event.paths),
            }
        else:
            document = {"event": _EVENT_NAMES[type(event)], **asdict(event)}
        self._stream.write(json.dumps(document) + "\n")
        self._stream.flush()


class PlainLines:
    """One line for each step, and for the search one every few seconds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._status = SearchStatus()
        self._said_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.flush()

    def __call__(self, event: Shown | Span) -> None:
        if isinstance(event, Span):
            return
        self._status.take(event)
        for line in _lines(event):
            self._say(line)
        if isinstance(event, TrialEnded) and (
            event.seconds - self._said_at >= _PLAIN_SECONDS or event.number == event.total
        ):
            self._said_at = event.seconds
            self._say(f"{event.seconds:7.1f} s  {self._status.line()}")
        if isinstance(event, Ended):
            console = Console(file=self._stream, width=120, highlight=False)
            console.print(_final(event, console.width))

    def _say(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


class LiveTable:
    """A table that changes in place while the search runs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = SearchStatus()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def __call__(self, event: Shown | Span) -> None:
        if isinstance(event, Span):
            return
        self._status.take(event)
        match event:
            case SearchBegan():
                self._live = Live(
                    self._table(), console=self._console, refresh_per_second=4, transient=True
                )
                self._live.start()
            case StepBegan(step=step):
                if self._live is None:
                    self._console.print(f"[dim]… {step}[/dim]", end="\r", highlight=False)
            case StepEnded():
                self._stop()
            case TrialEnded():
                if self._live is not None:
                    self._live.update(self._table())
            case Ended():
                self._stop()
                self._console.print(_final(event, self._console.width))
            case _:
                pass
        for line in _lines(event):
            self._console.print(Text(line))

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _table(self) -> RenderableType:
        rows = [_live_cells(name, row) for name, row in self._status.rows.items()]
        table = fitting_table(
            _LIVE_TITLES, rows, width=self._console.width, spare=("failed", "count", "default")
        )
        table.pad_edge = False
        return Group(table, Text(self._status.line(), style="bold"))


def _live_cells(name: str, row: WorkloadLine) -> tuple[str, ...]:
    return (
        name,
        str(row.count),
        str(row.trials),
        str(row.failed or ""),
        taken(row.default),
        taken(row.best),
        "" if (faster := gain(row.default.number, row.best.number)) is None else ratio(faster),
    )


def _lines(event: Shown) -> list[str]:
    """What every view says about an event in words."""
    return [printable(line, _MOST_SHOWN) for line in _words(event)]


def _words(event: Shown) -> list[str]:
    match event:
        case StepEnded():
            return [f"{event.seconds:7.1f} s  {event.step}: {event.detail}"]
        case DeviceJoined():
            timed = "" if event.clock == DeviceClock.CYCLES.value else ", timed by the clock"
            words = f"device {event.device}: sandbox {event.sandbox}{timed}"
            return [f"{event.seconds:7.1f} s  {words}"]
        case DeviceLeft():
            return [f"{event.seconds:7.1f} s  device {event.device} {event.how}: {event.why}"]
        case Notice():
            first, *further = event.text.split(_FURTHER)
            return [f"{event.seconds:7.1f} s  {first}", *(f"{'':13}{each}" for each in further)]
        case _:
            return []


def _final(event: Ended, width: int) -> RenderableType:
    parts: list[RenderableType] = []
    summary = event.summary
    if summary.workloads or summary.run.has_accelerator:
        parts += ["", workload_table(summary, width)]
    if summary.profile is not None and not summary.run.has_accelerator:
        parts += ["", *map(Text, map(printable, profile_lines(summary.profile)))]
    if summary.comparison is not None:
        parts += ["", *map(Text, map(printable, comparison_lines(summary.comparison)))]
    if event.summary.accuracy is not None:
        parts += ["", accuracy_table(event.summary.accuracy)]
        if event.summary.accuracy.judgement:
            parts.append(Text(event.summary.accuracy.judgement.verdict()))
    parts += ["", Text(_verdict(event.summary))]
    parts += [Text(f"{what:8} {where}") for what, where in event.paths]
    return Group(*parts)


def _verdict(summary: RunSummary) -> str:
    session = summary.session
    words = [plural(session.trials_this_session, "trial")]
    if session.trials_per_second:
        words.append(f"{session.trials_per_second:.1f} a second")
    if session.first_measured_seconds is not None:
        words.append(f"first measured after {session.first_measured_seconds:.1f} s")
    words.append(f"{session.total_seconds:.1f} s in all")
    text = ", ".join(words)
    if summary.speedup is not None:
        default, best = taken(summary.default), taken(summary.best)
        unit = " cycles" if summary.best.seconds is None else ""
        text += f"\nkernels {default} -> {best}{unit}: {summary.speedup:.2f}x"
        if summary.by_parts is not None:
            inside, beside = map(microseconds, summary.by_parts)
            text += f"\nthe same one by one in the program: {inside}; its other steps: {beside}"
    if summary.network_seconds is not None:
        text += f"\none image through the program: {microseconds(summary.network_seconds)}"
    if summary.network_cycles is not None:
        text += f"\none image through the program: {number(summary.network_cycles)} cycles"
        text += f", {summary.network_time}" if summary.network_time else ""
    if summary.remark:
        text += f"\n{summary.remark}"
    return text


def stdout_view(*, as_json: bool) -> View:
    """The view of this process's standard output."""
    return view_for(sys.stdout, as_json=as_json)
