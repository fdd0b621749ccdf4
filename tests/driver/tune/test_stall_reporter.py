"""A run that is quiet says so in time, and what it waits for."""

from __future__ import annotations

import threading

from kit.manual_clock import ManualClock

from driver.tune import stall_reporter
from driver.tune.stall_reporter import QUIET_SECONDS, StallReporter


def test_it_is_broken_with_the_innermost_reason_and_not_before() -> None:
    clock, said = ManualClock(), list[str]()
    with (
        StallReporter(said.append, clock=clock) as quiet,
        quiet.waiting(lambda: "the search goes on"),
    ):
        clock.advance(QUIET_SECONDS - 1)
        quiet.look()
        assert not said
        quiet.heard()
        clock.advance(QUIET_SECONDS - 1)
        quiet.look()
        assert not said
        with quiet.waiting(lambda: "devices: none just now"):
            clock.advance(1)
            quiet.look()
            quiet.look()
        assert said.pop(0) == "quiet for 8 s; devices: none just now"
        clock.advance(QUIET_SECONDS)
        quiet.look()
        assert said == ["quiet for 8 s; the search goes on"]


def test_it_speaks_by_itself_while_everything_else_is_stuck() -> None:
    spoke = threading.Event()
    clock = ManualClock()
    with StallReporter(lambda text: spoke.set(), clock=clock):
        clock.advance(QUIET_SECONDS)
        assert spoke.wait(30)


def test_the_limit_leaves_room_for_a_look() -> None:
    assert QUIET_SECONDS + 2 * stall_reporter.LOOK_SECONDS < 10
