"""A run's own log and metrics: what listeners hear is also written and counted."""

from __future__ import annotations

import re
import threading
import urllib.request
from pathlib import Path

from kit.manual_clock import ManualClock
from kit.reports.observed import log_lines
from kit.reports.summaries import a_summary
from tilefarm.clock import SystemClock
from tilefarm.watch.operations import Operations
from tilefarm.watch.trace_context import current_context

from driver.report.terminal.ended import Ended, Shown
from driver.run_events import (
    DeviceJoined,
    DeviceLeft,
    KnownWorkload,
    Notice,
    SearchBegan,
    Span,
    StepEnded,
    TrialEnded,
)
from driver.tune.watched import watched

EVENTS: tuple[Shown | Span, ...] = (
    StepEnded(step="import", seconds=1.0, detail="digits"),
    SearchBegan(
        workloads=(("conv", 1), ("dense", 1)),
        standings={
            "conv": KnownWorkload(trials=1, failed=0, default_cycles=90, best_cycles=80),
            "dense": KnownWorkload(trials=0, failed=0, default_cycles=None, best_cycles=None),
        },
        trials=10,
        done=1,
        seconds=1.0,
    ),
    DeviceJoined(device="sim0", sandbox="none", runtime="r", seconds=1.0),
    DeviceJoined(device="sim1", sandbox="none", runtime="r", seconds=1.0),
    DeviceLeft(device="sim1", why="pulled", seconds=2.0),
    Span(lane="compile 1", kind="compile", label="conv", begin_seconds=1.0, end_seconds=1.2),
    Span(lane="sim0", kind="transfer", label="conv", begin_seconds=1.2, end_seconds=1.21),
    Span(lane="sim0", kind="run", label="conv", begin_seconds=1.21, end_seconds=1.3),
    TrialEnded(
        number=2,
        total=10,
        workload="conv",
        status="ok",
        cycles=70,
        best_cycles=70,
        default_cycles=90,
        device="sim0",
        why="",
        seconds=2.0,
    ),
)


def page(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(answer.read().decode())


def test_events_are_told_written_and_counted(tmp_path: Path) -> None:
    told: list[Shown | Span] = []
    on = Operations(metrics="127.0.0.1:0")
    with watched(on, told.append, run_id="run-1", clock=SystemClock(), wall_origin=0.0) as watch:
        watch(EVENTS[0])
        watch.write_into(tmp_path)
        for event in EVENTS[1:]:
            watch(event)
        notice = told[0]
        assert isinstance(notice, Notice)
        numbers = page(notice.text.removeprefix("metrics: "))
    assert told[1:] == [*EVENTS]
    lines = log_lines(tmp_path / "driver.log")
    assert [line["event"] for line in lines] == [
        "metrics",
        "step_ended",
        "search_began",
        "device_joined",
        "device_joined",
        "device_left",
    ]
    assert {line["run"] for line in lines} == {"run-1"}
    assert lines[-1]["level"] == "warning"
    for row in (
        'trials_total{status="ok"} 1.0',
        'best_cycles{workload="conv"} 70.0',
        "held_devices 1.0",
        'devices_lost_total{device="sim1"} 1.0',
        "compile_seconds_count 1.0",
        'measure_seconds_count{device="sim0"} 1.0',
        'transfer_seconds_sum{device="sim0"} 0.01',
    ):
        assert re.search(rf"^tilefarm_{re.escape(row)}", numbers, re.M), row
    assert 'workload="dense"' not in numbers


def test_a_summary_is_the_last_that_is_told_however_long_its_run_takes_to_close() -> None:
    speakers: list[bool] = []

    def listen(event: Shown | Span) -> None:
        speakers.append(any(thread.name == "silence" for thread in threading.enumerate()))

    with watched(
        Operations(), listen, run_id="run-1", clock=SystemClock(), wall_origin=0.0
    ) as watch:
        watch(EVENTS[0])
        watch(Ended(summary=a_summary(), paths=(), seconds=3.0))
    assert speakers == [True, False]


def test_what_a_run_does_is_its_work_and_nobody_elses() -> None:
    with watched(
        Operations(), lambda event: None, run_id="run-7", clock=ManualClock(), wall_origin=0.0
    ):
        work = current_context()
        assert work is not None
        assert work.run == "run-7"
        seen: list[object] = []
        other = threading.Thread(target=lambda: seen.append(current_context()))
        other.start()
        other.join()
    assert seen == [None]
    assert current_context() is None
