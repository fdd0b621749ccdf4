"""How a tracker's devices and its line stand, and what devices do, told to its metrics."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

from tilefarm.rpc.tracker_calls import Devices, DeviceState, Usage
from tilefarm.watch import metrics as m
from tilefarm.watch.metrics import Metrics

_SECONDS: Final = 1.0
STATES: Final = ("free", "leased", "resting", "drained", "quarantined")


def state_of(device: DeviceState) -> str:
    """Which of `STATES` a device is in; what keeps it out of service comes first."""
    if device.quarantine:
        return "quarantined"
    if device.draining:
        return "drained"
    if device.resting:
        return "resting"
    return "leased" if device.owner else "free"


class UsageCounter:
    """Counts what devices do from what they say of their whole lives.

    Where a device was before this tracker heard of it is no news.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._last: dict[tuple[str, str], Usage] = {}

    def count(self, farm: Devices) -> None:
        """What has been done since this was last told."""
        now = {
            (state.device.name, state.device.epoch): state.usage
            for state in farm.states
            if state.usage is not None
        }
        for (name, epoch), usage in now.items():
            done = usage.since(self._last.get((name, epoch), usage))
            self._metrics.add(m.DEVICE_RUNS, max(0, done.runs), device=name)
            self._metrics.add(m.DEVICE_BUSY, max(0.0, done.busy_seconds), device=name)
        self._last = now


async def keep_gauges(overview: Callable[[], Devices], metrics: Metrics) -> None:
    """Tell them until cancelled, so that nobody who reads them meets the table itself."""
    work = UsageCounter(metrics)
    while True:
        farm = overview()
        counts = Counter(map(state_of, farm.states))
        for state in STATES:
            metrics.set(m.DEVICES, counts[state], state=state)
        metrics.set(m.WAITING, len(farm.waiting))
        work.count(farm)
        await asyncio.sleep(_SECONDS)
