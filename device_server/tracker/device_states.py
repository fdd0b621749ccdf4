"""What anybody may see of a device: how it is, who has it, and for how long."""

from __future__ import annotations

from dataclasses import replace

from tilefarm.rpc.tracker_calls import DeviceState

from device_server.tracker.entries import Device, Held
from device_server.tracker.table_state import Standing


def state_of(device: Device, standing: Standing, held: Held | None, now: float) -> DeviceState:
    """A device, with the lease that it is under if it is under one."""
    state = DeviceState(
        device=device.info,
        draining=standing.draining,
        quarantine=standing.quarantine,
        resting=device.resting,
        usage=device.pace.usage,
        lately=device.pace.lately,
    )
    if held is None:
        return state
    return replace(
        state,
        owner=held.holding.owner or held.holding.lease.lease_id,
        user=held.holding.user,
        leased_seconds=now - held.since,
    )
