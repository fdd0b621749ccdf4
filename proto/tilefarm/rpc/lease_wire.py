"""A device and its lease, as the tracker knows them, to messages and back, adjacent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tilefarm.lease import DeviceInfo, Lease
from tilefarm.measurement import DeviceClock
from tilefarm.rpc.codec import digest_from_wire, digest_to_wire, known
from tilefarm.v1 import tracker_pb2 as trk

CLOCKS: Final[Mapping[DeviceClock, trk.DeviceClock]] = {
    DeviceClock.CYCLES: trk.DEVICE_CLOCK_CYCLES,
    DeviceClock.SECONDS: trk.DEVICE_CLOCK_SECONDS,
}
_CLOCK_OF: Final[Mapping[int, DeviceClock]] = {
    trk.DEVICE_CLOCK_UNSPECIFIED: DeviceClock.CYCLES,
    **{number: clock for clock, number in CLOCKS.items()},
}
Labels = tuple[tuple[str, str], ...]


def labels_to_wire(labels: Labels) -> list[trk.Label]:
    """Labels as messages."""
    return [trk.Label(key=key, value=value) for key, value in labels]


def labels_from_wire(messages: Iterable[trk.Label]) -> Labels:
    """Labels out of their messages."""
    return tuple((label.key, label.value) for label in messages)


def device_to_wire(device: DeviceInfo) -> trk.DeviceInfo:
    """A device as a message."""
    return trk.DeviceInfo(
        name=device.name,
        address=device.address,
        target=digest_to_wire(device.target),
        runtime=device.runtime,
        sandbox=device.sandbox,
        epoch=device.epoch,
        labels=labels_to_wire(device.labels),
        self_test=device.self_test,
        clock=CLOCKS[device.clock],
    )


def device_from_wire(message: trk.DeviceInfo) -> DeviceInfo:
    """A device out of its message."""
    return DeviceInfo(
        name=message.name,
        address=message.address,
        target=digest_from_wire(message.target),
        runtime=message.runtime,
        sandbox=message.sandbox,
        epoch=message.epoch,
        labels=labels_from_wire(message.labels),
        self_test=message.self_test,
        clock=known(_CLOCK_OF, message.clock),
    )


def lease_to_wire(lease: Lease) -> trk.Lease:
    """A lease as a message."""
    return trk.Lease(
        lease_id=lease.lease_id,
        device=device_to_wire(lease.device),
        fence=lease.fence,
        ttl_seconds=lease.ttl_seconds,
        ticket=lease.ticket,
    )


def lease_from_wire(message: trk.Lease) -> Lease:
    """A lease out of its message."""
    return Lease(
        lease_id=message.lease_id,
        device=device_from_wire(message.device),
        fence=message.fence,
        ttl_seconds=message.ttl_seconds,
        ticket=message.ticket,
    )
