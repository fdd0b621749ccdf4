"""How a tracker's devices and its line stand, told to its metrics again and again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

from tilefarm.rpc.calls import Devices, DeviceState
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


async def keep_gauges(overview: Callable[[], Devices], metrics: Metrics) -> None:
    """Tell them until cancelled, so that nobody who reads them meets the table itself."""
    while True:
        farm = overview()
        counts = Counter(map(state_of, farm.states))
        for state in STATES:
            metrics.set(m.DEVICES, counts[state], state=state)
        metrics.set(m.WAITING, len(farm.waiting))
        await asyncio.sleep(_SECONDS)
