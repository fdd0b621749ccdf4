"""TraceContext named in headers, calls timed on both sides, and how far their clocks are apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.manual_clock import ManualClock
from tilefarm.rpc.served_call import TRAILER, Exchange, Phase, ServedCall, served_in
from tilefarm.rpc.timing import Watch, calling, note_phases, phase, serving, watching
from tilefarm.watch.trace_context import (
    BAGGAGE,
    TRACEPARENT,
    TraceContext,
    context_of,
    current_context,
    doing,
)

WORK = TraceContext.of("run-1").about("ab12", "run-1-7-1")


def test_work_travels_in_w3c_headers() -> None:
    headers = dict(WORK.headers)
    version, trace, span, flags = headers[TRACEPARENT].split("-")
    assert (version, len(trace), len(span), flags) == ("00", 32, 16, "01")
    assert headers[BAGGAGE] == "run=run-1,candidate=ab12"
    assert context_of(WORK.headers) == WORK
    assert TraceContext.of("run-1").trace_id == WORK.trace_id


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ((BAGGAGE, "run=r"),),
        ((TRACEPARENT, "00-zz-11-01"),),
        ((TRACEPARENT, b"00-" + b"1" * 32 + b"-" + b"1" * 16 + b"-01"),),
    ],
)
def test_headers_that_name_no_work_are_passed_over(
    headers: tuple[tuple[str, str | bytes], ...],
) -> None:
    assert context_of(headers) is None


def test_words_of_strangers_in_the_baggage_are_passed_over() -> None:
    parent = WORK.headers[0]
    told = context_of((parent, (BAGGAGE, "token=secret,run=two words,candidate=" + "x" * 65)))
    assert told is not None
    assert (told.run, told.candidate) == ("", "")


def test_work_is_done_within_its_block() -> None:
    with doing(WORK):
        assert current_context() == WORK
    assert current_context() is None


def test_work_of_a_generator_that_is_thrown_away_ends_elsewhere() -> None:
    async def answers() -> AsyncGenerator[int]:
        with serving(WORK, "sim0", ManualClock()):
            yield 1
            yield 2

    async def client() -> None:
        some = answers()
        assert await anext(some) == 1
        await asyncio.create_task(end(some))  # as gRPC does when a caller goes away

    async def end(some: AsyncGenerator[int]) -> None:
        await some.aclose()

    asyncio.run(client())


def call(offset: float) -> tuple[Exchange, ManualClock]:
    """A call to a server whose clock is that far behind: 1 s there, 3 s of work, 1 s back."""
    ours, theirs = ManualClock(1000.0), ManualClock(1000.0 - offset)
    seen: list[Exchange] = []
    with doing(WORK), watching(Watch(seen.append, ours)):
        answered = calling("Run")
        ours.advance(1)
        theirs.advance(1)
        with serving(WORK, "sim0", theirs) as timing:
            assert timing is not None
            with phase("queue"):
                theirs.advance(1)
            theirs.advance(2)
            note_phases("runner", ("load", 0.5), ("run", 1.5))
        ours.advance(4)
        answered(timing.trailer)
    return seen[0], theirs


@pytest.mark.parametrize("offset", [0.0, 3600.0, -3600.0])
def test_a_call_is_timed_on_both_sides_whatever_the_clocks_say(offset: float) -> None:
    exchange, _ = call(offset)
    assert exchange.offset_bounds == (offset - 1, offset + 1)
    assert exchange.offset_seconds == offset
    assert exchange.travel_seconds == 2
    assert exchange.served.phases == (
        Phase(name="queue", began_seconds=0, ended_seconds=1),
        Phase(name="load", began_seconds=1, ended_seconds=1.5, part="runner"),
        Phase(name="run", began_seconds=1.5, ended_seconds=3, part="runner"),
    )


def test_nothing_is_timed_without_work() -> None:
    taken: list[Exchange] = []
    with serving(None, "sim0", ManualClock()) as timing, phase("queue"):
        assert timing is None
    with watching(Watch(taken.append, ManualClock())):
        calling("Run")(
            ((TRAILER, ServedCall(component="x", arrived_seconds=0, seconds=1).to_bytes()),)
        )
    assert not taken


@given(st.binary(max_size=200) | st.text().map(str.encode))
def test_nonsense_in_a_trailer_is_no_time(told: bytes) -> None:
    assert served_in(((TRAILER, told),)) is None


@pytest.mark.parametrize(
    "told",
    [
        b'["x", 1, 2, [["a", 0, 1]], ""]',
        b'["x", NaN, 2, [], ""]',
        b'["x", true, 2, [], ""]',
        b'[1, 1, 2, [], ""]',
        b'["x", 1, 2, []]',
        b"[" * 5000,
        b'["x", 1, 2, {}, ""]',
    ],
)
def test_a_trailer_of_another_shape_is_no_time(told: bytes) -> None:
    assert served_in(((TRAILER, told),)) is None


def test_of_very_many_phases_the_first_travel() -> None:
    phases = tuple(Phase(name=f"p{n}", began_seconds=n, ended_seconds=n + 1) for n in range(99))
    served = ServedCall(component="sim0", arrived_seconds=1e9, seconds=99, phases=phases)
    told = served_in(((TRAILER, served.to_bytes()),))
    assert told is not None
    assert told.phases == phases[:16]
