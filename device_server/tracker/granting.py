"""A lease as it is given: with its fence and its ticket, and with whose it is and what for."""

from __future__ import annotations

from tilefarm.lease import Lease, ticket_of
from tilefarm.rpc.tracker_calls import Acquire

from device_server.tracker.entries import Device
from device_server.tracker.table_state import Holding


def holding_of(
    device: Device, wish: Acquire, user: str, *, lease_id: str, fence: int, ttl_seconds: float
) -> Holding:
    """A lease of a device to a user who has wished for one.

    Args:
        device: that is leased.
        wish: what is granted.
        user: whose wish it is.
        lease_id: a fresh one.
        fence: above that of every earlier lease.
        ttl_seconds: silence of the user after which it is over.
    """
    ticket = ticket_of(
        device.secret, lease_id=lease_id, fence=fence, epoch=device.info.epoch, user=user
    )
    return Holding(
        lease=Lease(
            lease_id=lease_id,
            device=device.info,
            fence=fence,
            ttl_seconds=ttl_seconds,
            ticket=ticket,
        ),
        owner=wish.owner,
        user=user,
        request_id=wish.request_id,
        job=wish.job,
        priority=wish.priority,
    )
