"""What anybody may see of a device: how it is, who has it, and for how long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from tilefarm.rpc.tracker_calls import DeviceState

from device_server.tracker.administrative_states import AdministrativeStates
from device_server.tracker.entries import Device, Held
from device_server.tracker.lease_index import LeaseIndex
from device_server.tracker.table_state import AdministrativeState

LONGEST_OWNER: Final = 100
"""Characters of whom a device is leased for, in a list of all devices."""


def states_of(
    devices: Iterable[Device], standings: AdministrativeStates, leases: LeaseIndex, now: float
) -> tuple[DeviceState, ...]:
    """All devices by name, with their use."""
    return tuple(
        _state_of(device, standings.of(device.info.name), leases.get(device.lease_id), now)
        for device in sorted(devices, key=lambda device: device.info.name)
    )


def _state_of(
    device: Device, standing: AdministrativeState, held: Held | None, now: float
) -> DeviceState:
    """A device, with the lease that it is under if it is under one."""
    state = DeviceState(
        device=device.info,
        draining=standing.draining,
        quarantine=standing.quarantine,
        resting=device.resting,
        usage=device.pace.usage,
        lately=device.pace.lately,
        refused=len(device.refused),
    )
    if held is None:
        return state
    return replace(
        state,
        owner=(held.holding.owner or held.holding.lease.lease_id)[:LONGEST_OWNER],
        user=held.holding.user,
        leased_seconds=now - held.since,
    )
