"""Log lines: their two formats, their levels, and the work that they name."""

from __future__ import annotations

import errno
import io
import json
from typing import Any

import pytest
from kit.manual_clock import ManualClock
from tilefarm.watch.log import Level, LineLog, LogFormat, LogStyle
from tilefarm.watch.trace_context import TraceContext, doing

AT = ManualClock(1_700_000_000.25)


def written(style: LogStyle, *, work: TraceContext | None = None, **fields: Any) -> str:
    stream = io.StringIO()
    with doing(work):
        LineLog("sim 0", stream, style=style, clock=AT)("ran", **fields)
    return stream.getvalue()


def test_an_event_is_one_line() -> None:
    line = written(LogStyle(), status="ok", seconds=0.123456789, why='a\nand "b"', empty="")
    assert line == (
        'at=2023-11-14T22:13:20.250Z level=info event=ran component="sim 0" status=ok'
        ' seconds=0.123457 why="a\\nand \\"b\\"" empty=""\n'
    )


def test_the_same_event_as_an_object() -> None:
    document = json.loads(written(LogStyle(format=LogFormat.JSON), seconds=0.5, why="a\nb"))
    assert document == {
        "at": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "event": "ran",
        "component": "sim 0",
        "seconds": 0.5,
        "why": "a\nb",
    }


@pytest.mark.parametrize("least", Level)
def test_events_below_the_level_are_not_written(least: Level) -> None:
    lines = [written(LogStyle(level=least), level=level) for level in Level]
    assert [bool(line) for line in lines] == [level >= least for level in Level]


def test_a_line_names_the_work_that_is_done() -> None:
    line = written(LogStyle(), work=TraceContext.of("run-1").about("abc", ""), run="another")
    assert "run=another candidate=abc" in line
    assert "run=" not in written(LogStyle())


def test_a_line_that_cannot_be_written_ends_nobody() -> None:
    class Full:
        def write(self, text: str, /) -> object:
            raise OSError(errno.ENOSPC, "No space left on device")

    LineLog("tracker", Full(), clock=ManualClock())("ready")
