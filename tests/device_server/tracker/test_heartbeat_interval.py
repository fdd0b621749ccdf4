"""Heartbeats: every device has an interval of its own, so that those who came together part."""

from __future__ import annotations

from collections import Counter

from device_server.tracker.heartbeat_interval import heartbeat_seconds

TTL_SECONDS = 10.0
DEVICES = [f"d{number}" for number in range(1000)]


def test_an_interval_is_between_a_fourth_and_a_third_of_the_time_to_live() -> None:
    intervals = [heartbeat_seconds(name, TTL_SECONDS) for name in DEVICES]
    assert 2.5 <= min(intervals) < 2.52
    assert 3.31 < max(intervals) <= 3.34
    assert heartbeat_seconds("d1", TTL_SECONDS) == heartbeat_seconds("d1", TTL_SECONDS)
    assert heartbeat_seconds("d1", 1.0) == heartbeat_seconds("d1", TTL_SECONDS) / TTL_SECONDS


def test_devices_that_came_together_soon_call_one_after_the_other() -> None:
    calls = Counter(
        int(beat * heartbeat_seconds(name, TTL_SECONDS) / 0.1)
        for name in DEVICES
        for beat in range(60)
    )
    mean = len(DEVICES) / 29
    assert calls[0] == len(DEVICES), "all at once in the beginning"
    assert all(calls[at] <= 6 * mean for at in range(20, 100))
    assert all(calls[at] <= 2 * mean for at in range(100, 1200))
