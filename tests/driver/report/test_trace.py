"""The trace of a run across processes: calls on the run's clock, nested slices, arrows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.reports.observed import assert_sound_trace, events_of
from kit.reports.summaries import a_summary
from tilefarm.rpc.served_call import Exchange, Phase, ServedCall
from tilefarm.watch.trace_context import TraceContext

from driver.report.aligned import aligned
from driver.report.trace import chrome_trace
from driver.run_events import Span

ORIGIN = 1_000_000.0
BARE = replace(a_summary(), spans=(), timeline=None)


def exchange(
    sent: float,
    came: float,
    *,
    skew: float = 0.0,
    seconds: float = 1.0,
    method: str = "Run",
    candidate: str = "c1",
    phases: tuple[Phase, ...] = (),
) -> Exchange:
    """A call whose server's clock is `skew` ahead; ways there and back take as long."""
    arrived = (sent + came - seconds) / 2 + skew + ORIGIN
    return Exchange(
        method=method,
        sent_seconds=sent + ORIGIN,
        came_seconds=came + ORIGIN,
        served=ServedCall(
            component="sim0", arrived_seconds=arrived, seconds=seconds, phases=phases
        ),
        work=TraceContext.of("run-1").about(candidate, ""),
    )


@pytest.mark.parametrize("skew", [0.0, 3600.0, -3600.0])
def test_a_servers_clock_does_not_matter(skew: float) -> None:
    (span,) = aligned([exchange(10, 12, skew=skew)], ORIGIN)
    assert (span.begin_seconds, span.end_seconds) == pytest.approx((10.5, 11.5))


def test_the_call_that_travelled_least_sets_the_clock() -> None:
    quick = exchange(10, 11.002, skew=5)
    late = replace(
        exchange(20, 24),
        served=ServedCall(component="sim0", arrived_seconds=ORIGIN + 20.1 + 5, seconds=1),
    )
    _, span = aligned([quick, late], ORIGIN)
    assert span.begin_seconds == pytest.approx(20.1)


def test_no_call_leaves_the_one_that_asked_for_it_though_clocks_jump() -> None:
    before, after = exchange(10, 11.5), exchange(20, 21.5, skew=-3600)
    for span, sent in zip(aligned([before, after], ORIGIN), (10, 20), strict=True):
        assert sent - 1e-6 <= span.begin_seconds <= span.end_seconds <= sent + 1.5 + 1e-6


def test_phases_stay_within_their_call_and_parts_are_processes_of_their_own() -> None:
    phases = (
        Phase(name="queue", began_seconds=-1, ended_seconds=0.25),
        Phase(name="load", began_seconds=0.25, ended_seconds=99, part="runner"),
    )
    call, load = aligned([exchange(0, 2, phases=phases)], ORIGIN)
    (queue,) = call.inner
    assert (queue.begin_seconds, queue.end_seconds) == pytest.approx((0.5, 0.75))
    assert load.process == "runner of sim0"
    assert load.end_seconds == call.end_seconds


seconds = st.floats(0, 100).map(lambda value: round(value, 4))


@given(st.lists(st.tuples(seconds, seconds, seconds, seconds), max_size=12))
def test_whatever_servers_say_the_trace_is_sound(rows: list[tuple[float, ...]]) -> None:
    exchanges = [
        exchange(
            sent,
            sent + taken,
            seconds=min(taken, busy),
            skew=skew,
            phases=(Phase(name="queue", began_seconds=busy / 2, ended_seconds=busy),),
        )
        for sent, taken, busy, skew in rows
    ]
    calls = tuple(aligned(exchanges, ORIGIN))
    assert_sound_trace(chrome_trace(BARE, calls), {"sim0"} if rows else ())


def test_spans_of_a_lane_do_not_overlap_by_what_a_clock_cannot_tell() -> None:
    ends = [0.0, 0.3, 0.6, 0.9]
    spans = tuple(
        Span(lane="driver", kind="propose", label="conv", begin_seconds=a - 2e-7, end_seconds=b)
        for a, b in pairwise(ends)
    )
    assert_sound_trace(chrome_trace(replace(BARE, spans=spans[1:])), {"driver"})


def test_an_arrow_leads_from_a_compile_to_each_of_its_runs() -> None:
    def span(kind: str, lane: str, begin: float, candidate: str) -> Span:
        return Span(
            lane=lane,
            kind=kind,
            label="conv",
            begin_seconds=begin,
            end_seconds=begin + 1,
            candidate=candidate,
        )

    spans = (
        span("compile", "compile 1", 0, "a"),
        span("compile", "compile 2", 0, "b"),
        span("run", "sim0", 2, "a"),
        span("run", "sim1", 4, "a"),
        span("run", "sim1", 6, "unknown"),
    )
    trace = chrome_trace(replace(BARE, spans=spans))
    assert_sound_trace(trace, {"driver", "compile 1", "compile 2"})
    events, named = events_of(trace)
    arrows = [(named[e["pid"]], e["ph"]) for e in events if e["ph"] in "sf"]
    assert arrows == [("compile 1", "s"), ("driver", "f")] * 2
