"""The drift check on the times of a board whose host is busy."""

from __future__ import annotations

from pathlib import Path

from kit.manual_clock import ManualClock
from tilefarm.target import TARGETS

from device_server.device.canary import Canary, Drift
from device_server.device.known_kernel import known_kernel

from .busy_host import Recorded


def test_noise_stops_no_board_and_a_throttled_one_is_found(tmp_path: Path) -> None:
    runner = Recorded()
    known = known_kernel(TARGETS["sim"], b"code")
    canary = Canary(known, runner, tmp_path, clock=ManualClock(), device="board")
    canary.prove()
    for check in range(runner.checks):
        runner.begin(check)
        assert canary.check() is None, check
    runner.throttle()
    assert isinstance(canary.check(), Drift)
