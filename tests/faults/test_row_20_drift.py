"""Row 20: a device that slows down rests; what it measured meanwhile is measured again.

It comes back however often that happens: only one that is wrong or gone is put into quarantine.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kit.farm.in_process import Farm
from tilefarm.measurement import Status

from device_server.device.health_monitor import MonitorLimits
from device_server.device.settings import DeviceSettings
from device_server.tracker.limits import TableLimits

from .wrong_device_search import CANDIDATES, KERNEL, RIGHT_CYCLES, CountingRunner, searched

SPELLS = range(20, 140, 30)
"""After so many runs, each; two of them may be one."""
LIMITS = TableLimits(device_ttl_seconds=3.0)
"""Heartbeats come five times as often."""


def warm(runner: CountingRunner, runs: int) -> None:
    """A clock that is a tenth slower from those runs on, until it has been looked at twice."""
    if runs in SPELLS:
        runner.pace, runner.cool_after = 1.1, runner.checks + 2


def soon(settings: DeviceSettings) -> DeviceSettings:
    return replace(settings, watch=MonitorLimits(cooldown_seconds=0.2))


def test_times_of_a_slow_spell_are_not_kept(tmp_path: Path) -> None:
    with Farm(tmp_path / "farm") as farm:
        tracker = farm.tracker(limits=LIMITS)
        runner = CountingRunner(kernel=KERNEL, after=warm)
        farm.device(tracker=tracker, runner=runner, settings=soon)
        with searched(farm, tracker, tmp_path, devices=1) as search:
            kept = search.store.trials()
            assert search.result.why == "exhausted"
    assert {(t.status, t.cycles) for t in kept} == {(Status.OK, RIGHT_CYCLES)}
    assert len(kept) == CANDIDATES
    assert 0 < len(runner.seen) - CANDIDATES < 50 * len(SPELLS), "what it gave when it was slow"
    assert [event for event, _ in farm.events].count("recovered") > LIMITS.losses
