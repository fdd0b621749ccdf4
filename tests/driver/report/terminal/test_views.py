"""What is shown: plain lines and JSON lines as golden texts, and a live table that cleans up."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from kit.reports.profiles import timed_profile
from kit.reports.summaries import a_summary, by_the_clock
from rich.console import Console

from driver.report.terminal.ended import Ended, Shown
from driver.report.terminal.views import JsonLines, LiveTable, PlainLines, view_for
from driver.run_events import (
    DeviceJoined,
    DeviceLeft,
    KnownWorkload,
    Notice,
    SearchBegan,
    Span,
    StepBegan,
    StepEnded,
    TrialEnded,
)


def trial(number: int, cycles: int | None, seconds: float) -> TrialEnded:
    return TrialEnded(
        number=number,
        total=3,
        workload="conv",
        status="ok" if cycles else "run_timeout",
        cycles=cycles,
        best_cycles=400,
        default_cycles=1000,
        device="sim0",
        why="" if cycles else "10 s",
        seconds=seconds,
    )


def events() -> list[Shown | Span]:
    return [
        StepBegan(step="import", seconds=0.0),
        StepEnded(step="import", seconds=0.5, detail="digits, 10 operators"),
        SearchBegan(workloads=(("conv", 2),), trials=3, done=0, seconds=1.0),
        StepBegan(step="search", seconds=1.0),
        DeviceJoined(device="sim0", sandbox="seccomp", runtime="abc", seconds=1.1),
        Span(lane="sim0", kind="run", label="conv", begin_seconds=1, end_seconds=2),
        trial(1, 1000, 2.0),
        trial(2, None, 6.5),
        DeviceLeft(device="sim0", why="pulled", seconds=6.6),
        Notice(text="something", seconds=6.7),
        trial(3, 400, 7.0),
        StepEnded(step="search", seconds=7.0, detail="3 trials"),
        Ended(summary=a_summary(), paths=(("report", "out/report.html"),), seconds=8.0),
    ]


def test_plain_lines(golden: Callable[[str], None]) -> None:
    stream = io.StringIO()
    with PlainLines(stream) as view:
        for event in events():
            view(event)
    golden("\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n")


def test_a_notice_of_several_lines_is_as_many_and_no_more() -> None:
    stream = io.StringIO()
    PlainLines(stream)(Notice(text="promise broken\n  try: bits\nforged", seconds=1.5))
    assert stream.getvalue() == "    1.5 s  promise broken\n             try: bits\\nforged\n"


def test_json_lines_are_one_document_each() -> None:
    stream = io.StringIO()
    with JsonLines(stream) as view:
        for event in events():
            view(event)
    documents = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [d["event"] for d in documents] == [
        "step_began",
        "step_ended",
        "search_began",
        "step_began",
        "device_joined",
        "trial",
        "trial",
        "device_left",
        "notice",
        "trial",
        "step_ended",
        "summary",
    ]
    assert documents[5]["cycles"] == 1000
    assert documents[6]["status"] == "run_timeout"
    assert documents[-1]["paths"] == {"report": "out/report.html"}
    assert "spans" not in documents[-1]


def test_a_live_table_shows_the_cursor_again() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    with LiveTable(console) as view:
        for event in events()[:8]:
            view(event)
    text = stream.getvalue()
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")
    assert "conv" in text


def test_the_whole_run_on_a_terminal() -> None:
    stream = io.StringIO()
    with LiveTable(Console(file=stream, force_terminal=True, width=100)) as view:
        for event in events():
            view(event)
    assert "out/report.html" in stream.getvalue()


@pytest.mark.parametrize("width", [72, 80, 100, 120])
def test_numbers_are_whole_on_narrow_terminals(width: int) -> None:
    stream = io.StringIO()
    with LiveTable(Console(file=stream, force_terminal=True, width=width)) as view:
        for event in events():
            view(event)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    (row,) = (line for line in lines if line.startswith(" conv2d"))
    assert "9 000  3 000  3.00x" in row
    assert row.endswith("1 run_timeout")
    assert len(row) <= width


def test_a_continued_run_shows_where_it_stands() -> None:
    stream = io.StringIO()
    standing = KnownWorkload(trials=7, failed=1, default_cycles=900, best_cycles=300)
    with LiveTable(Console(file=stream, force_terminal=True, width=100)) as view:
        view(
            SearchBegan(
                workloads=(("conv", 2),),
                standings={"conv": standing},
                trials=9,
                done=7,
                seconds=1.0,
            )
        )
    text = stream.getvalue()
    assert "900   300  3.00x" in text
    assert "failed 1  3.00x faster than untuned" in text


@pytest.mark.parametrize(("as_json", "kind"), [(True, JsonLines), (False, PlainLines)])
def test_a_pipe_gets_lines(as_json: bool, kind: type) -> None:
    assert isinstance(view_for(io.StringIO(), as_json=as_json), kind)


def test_the_end_says_what_the_program_takes_on_the_board() -> None:
    stream = io.StringIO()
    with PlainLines(stream) as view:
        summary = replace(a_summary(), network_time="about 6.2 ms at 100 MHz")
        view(Ended(summary=summary, paths=(), seconds=8.0))
    assert "through the program: 8 123 cycles, about 6.2 ms at 100 MHz" in stream.getvalue()


def test_devices_without_counters_show_microseconds() -> None:
    timed = replace(trial(1, None, 2.0), status="ok", best_cycles=None, default_cycles=None)
    joined = DeviceJoined(device="b", sandbox="none", runtime="r", seconds=1.0, clock="seconds")
    stream = io.StringIO()
    with PlainLines(stream) as view:
        for event in (events()[2], joined):
            view(event)
        view(replace(timed, kernel_seconds=1e-3, best_seconds=4e-4, default_seconds=1e-3, number=3))
        view(Ended(summary=by_the_clock(a_summary()), paths=(), seconds=8.0))
    text = stream.getvalue()
    assert "device b: sandbox none, timed by the clock" in text
    assert "2.50x faster than untuned" in text
    assert "one image through the program: 812.3 us" in text
    assert "kernels 2 000.0 us -> 660.0 us: 3.03x" in text
    (row,) = (line for line in text.splitlines() if line.startswith(" conv2d"))
    assert "900.0 us  300.0 us  3.00x" in row
    assert "cycles:" not in text


def test_the_end_tells_kernels_in_the_program_from_its_other_steps() -> None:
    profile, stream = timed_profile(), io.StringIO()
    summary = by_the_clock(replace(a_summary(), profile=profile))
    row = replace(summary.workloads[0], name=profile.layers[2].kernel)
    with PlainLines(stream) as view:
        view(Ended(summary=replace(summary, workloads=(row,)), paths=(), seconds=8.0))
    assert "the same one by one in the program: 30.0 us; its other steps: 11.0 us" in (
        stream.getvalue()
    )


def test_the_end_says_that_a_program_takes_many_times_its_kernels() -> None:
    usual = a_summary()
    assert usual.best.cycles is not None
    odd = replace(usual, network_cycles=40 * usual.best.cycles)
    texts = []
    for summary in (usual, odd):
        stream = io.StringIO()
        with PlainLines(stream) as view:
            view(Ended(summary=summary, paths=(), seconds=8.0))
        texts.append(" ".join(stream.getvalue().split()))
    said = "the whole program takes 40.0 times what its parts take one by one"
    assert [said in text for text in texts] == [False, True]
