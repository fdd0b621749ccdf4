"""A tracker that could not run forgets nobody for what could not be heard meanwhile."""

from __future__ import annotations

from kit.farm.in_process import CREDENTIALS, Farm
from kit.manual_clock import ManualClock

from device_server.tracker.client import TrackerClient
from device_server.tracker.listening_clock import LONGEST_SECONDS, ListeningClock


def test_a_while_in_which_nobody_looked_is_a_moment() -> None:
    clock = ManualClock(5.0)
    listening = ListeningClock(clock)
    assert listening.seconds() == 5.0
    clock.advance(0.25)
    assert listening.seconds() == 5.25
    clock.advance(3600.0)
    assert listening.seconds() == listening.seconds() == 5.25 + LONGEST_SECONDS
    clock.advance(0.25)
    assert listening.seconds() == 5.5 + LONGEST_SECONDS
    assert listening.wall_seconds() == clock.wall_seconds()
    listening.sleep(1.0)
    assert clock.seconds() == 3606.5


def test_who_called_while_it_stood_still_has_lost_nothing(farm: Farm) -> None:
    clock = ManualClock()
    tracker = farm.tracker(clock=clock)
    farm.device(tracker=tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
        assert lease is not None
        for _ in range(3):
            clock.advance(3600.0)
            client.renew(lease)
        assert [state.owner for state in client.states()] == ["test"]
    assert "expired" not in {event for event, _ in farm.events}
