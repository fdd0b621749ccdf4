"""How often a user may call."""

from __future__ import annotations

import pytest
from kit.manual_clock import ManualClock
from tilefarm.errors import BusyError

from device_server.tracker.call_rate_limit import CallRateLimit


def test_a_user_gets_so_many_calls_a_second_and_hears_when_the_next_is_welcome() -> None:
    clock = ManualClock()
    rates = CallRateLimit(4.0, clock)
    for _ in range(4):
        rates.take("ann")
    with pytest.raises(BusyError, match="ann makes more than 4 calls a second") as refused:
        rates.take("ann")
    assert "--calls-per-user" in refused.value.hint
    assert refused.value.retry_seconds == 0.25
    rates.take("bob")
    clock.advance(refused.value.retry_seconds)
    rates.take("ann")
    with pytest.raises(BusyError):
        rates.take("ann")


def test_who_was_quiet_for_long_has_saved_one_second() -> None:
    clock = ManualClock()
    rates = CallRateLimit(2.0, clock)
    clock.advance(3600.0)
    rates.take("ann")
    rates.take("ann")
    with pytest.raises(BusyError):
        rates.take("ann")
