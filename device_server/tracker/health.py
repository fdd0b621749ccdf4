"""How a tracker is, and each of its devices: in service or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilefarm.rpc import methods
from tilefarm.rpc.health import Health
from tilefarm.rpc.tracker_calls import Devices

from device_server.tracker.gauges import state_of

DEVICE: Final = "device/"
"""Before a device's name, its service's."""


def health_of(name: str, overview: Callable[[], Devices]) -> Health:
    """A device that nobody may lease does not serve; one that is in use does."""
    if name in ("", methods.TRACKER):
        return Health.SERVING
    for state in overview().states:
        if name == DEVICE + state.device.name:
            serves = state_of(state) in ("free", "leased")
            return Health.SERVING if serves else Health.NOT_SERVING
    return Health.SERVICE_UNKNOWN
