"""A repeated or resumed command knows what earlier sessions did, whatever became of their file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kit.reports.summaries import a_summary
from tilefarm.rpc.served_call import Exchange, Phase, ServedCall
from tilefarm.watch.trace_context import TraceContext

from driver.report.gantt_chart import gantt_chart
from driver.report.trace import chrome_trace
from driver.run_events import Span
from driver.tune.span_log import SpanLog

BEGAN = 1_700_000_000.0


def a_span(begin: float, kind: str = "run", candidate: str = "c1") -> Span:
    return Span(
        lane="sim0",
        kind=kind,
        label="conv",
        begin_seconds=begin,
        end_seconds=begin + 0.5,
        candidate=candidate,
    )


def a_call(sent: float, *, skew: float = 0.0) -> Exchange:
    phases = (Phase(name="queue", began_seconds=0.0, ended_seconds=0.25, part="runner"),)
    served = ServedCall(
        component="sim0",
        arrived_seconds=sent + 0.5 + skew,
        seconds=1.0,
        phases=phases,
        caller="ann",
    )
    return Exchange(
        method="Run",
        sent_seconds=sent,
        came_seconds=sent + 2.0,
        served=served,
        work=TraceContext.of("r").about("c1", ""),
    )


def a_session(path: Path, run: str, began: float, *, skew: float = 0.0) -> SpanLog:
    """One that did something before it knew its folder, and something afterwards."""
    log = SpanLog(run, began_seconds=began)
    log.span(a_span(0.0, kind="import", candidate=""))
    log.call(a_call(began + 1.0, skew=skew))
    log.open(path)
    log.span(a_span(2.0))
    log.call(a_call(began + 3.0, skew=skew))
    log.close()
    return log


def test_the_next_session_knows_all_of_the_earlier_ones_on_one_clock(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    first = a_session(path, "run-1", BEGAN, skew=5.0)
    second = a_session(path, "run-2", BEGAN + 100, skew=-7.0)
    assert second.began_seconds == BEGAN
    assert [s.begin_seconds for s in second.spans()] == [0.0, 2.0, 100.0, 102.0]
    assert second.spans()[:2] == first.spans()
    assert second.calls()[:4] == first.calls()
    begins = [call.begin_seconds for call in second.calls() if call.process == "sim0"]
    assert begins == pytest.approx([1.5, 3.5, 101.5, 103.5], abs=1e-6)
    assert {call.process for call in second.calls()} == {"sim0", "runner of sim0"}
    assert {call.candidate for call in second.calls()} == {"c1"}


def test_what_a_killed_session_told_is_there_but_for_the_line_it_died_in(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    killed = SpanLog("run-1", began_seconds=BEGAN)
    killed.open(path)
    killed.span(a_span(1.0))
    with path.open("ab") as file:  # nobody closed it
        file.write(b'["span","sim0","run",\xff')
    later = a_session(path, "run-2", BEGAN + 100)
    assert [s.begin_seconds for s in later.spans()] == [1.0, 100.0, 102.0]
    again = a_session(path, "run-3", BEGAN + 200)
    assert [s.begin_seconds for s in again.spans()] == [1.0, 100.0, 102.0, 200.0, 202.0]
    killed.close()


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "[]",
        "7",
        '["span"]',
        '["span", 1, 2, 3, 4, 5, 6]',
        '["span", "a", "b", "c", "x", null, "d"]',
        '["call", "Run", 1, 2, "c", ["sim0"]]',
        '["call", "Run", 1, null, "c", ["sim0", 1.0, 1.0, [], ""]]',
        "[" * 100_000,
    ],
)
def test_a_line_that_says_nothing_costs_only_itself(tmp_path: Path, line: str) -> None:
    path = tmp_path / "spans.jsonl"
    a_session(path, "run-1", BEGAN)
    path.write_text(line + "\n" + path.read_text())
    assert len(a_session(path, "run-2", BEGAN + 100).spans()) == 4


def test_of_very_many_calls_the_last_ones_are_kept_and_the_file_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    a_session(path, "run-1", BEGAN)
    log = SpanLog("run-2", began_seconds=BEGAN + 100, most_calls=10)
    log.open(path)
    longest = 0
    for n in range(95):
        log.call(a_call(BEGAN + 200 + n))
        log.span(a_span(200.0 + n))
        longest = max(longest, path.read_text().count('["call"'))
    log.close()
    assert longest <= 20
    read = SpanLog("run-3", began_seconds=BEGAN + 1000, most_calls=10)
    read.open(path)
    read.close()
    begins = [call.begin_seconds for call in read.calls() if call.process == "sim0"]
    assert begins == pytest.approx([200.5 + n for n in range(85, 95)], abs=1e-6)
    assert len(read.spans()) == 2 + 95


def test_records_fill_in_for_a_file_that_is_gone_or_came_later(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    log = SpanLog("run-2", began_seconds=BEGAN + 100)
    recorded = [a_span(BEGAN + 3.0), a_span(BEGAN + 5.0)]
    log.open(path, recorded)
    log.span(a_span(1.0))
    log.close()
    assert log.began_seconds == BEGAN + 3.0
    assert [s.begin_seconds for s in log.spans()] == pytest.approx([0.0, 2.0, 98.0])
    after = SpanLog("run-3", began_seconds=BEGAN + 200)
    after.open(path, [*recorded, a_span(BEGAN + 101.0)])
    after.close()
    assert [s.begin_seconds for s in after.spans()] == pytest.approx([0.0, 2.0, 98.0])


def test_a_file_that_cannot_be_written_costs_nothing_of_this_session(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = a_session(tmp_path / "file" / "spans.jsonl", "run-1", BEGAN)
    assert len(log.spans()) == 2
    assert len(log.calls()) == 4


def test_pictures_leave_out_the_days_between_sessions(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    a_session(path, "run-1", BEGAN)
    spans = a_session(path, "run-2", BEGAN + 3 * 86_400).spans()
    chart = gantt_chart(spans)
    assert "s in which nobody did anything are left out" in chart
    assert "33 % busy" in chart  # 2 of 6 seconds, and one stands for the days
    assert "left out" not in gantt_chart(spans[:2])


def test_a_trace_has_no_arrows_between_those_of_whom_nothing_is_known() -> None:
    """Records do not say which compile a run belongs to."""
    spans = (a_span(5.0, kind="compile", candidate=""), a_span(1.0, candidate=""))
    trace = chrome_trace(replace(a_summary(), spans=spans))
    assert '"ph":"s"' not in trace
