"""How a device is: it serves unless something keeps it from running kernels."""

from __future__ import annotations

from tilefarm.rpc import methods
from tilefarm.rpc.health import Health

from device_server.device.health_state import HealthState


def health_of(name: str, condition: HealthState) -> Health:
    """Of the server; that its tracker has drained it is for the tracker to say."""
    if name not in ("", methods.DEVICE):
        return Health.SERVICE_UNKNOWN
    return Health.NOT_SERVING if condition.trouble else Health.SERVING
