"""What a tracker forgives, and how much one user may have."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLimits:
    """What is forgiven, and how much one may have.

    Attributes:
        device_ttl_seconds: silence of a device.
        lease_ttl_seconds: silence of a lease's holder.
        losses: of a device in a row; the next one puts it into quarantine.
        leases_per_user: that one user holds at a time; None: as many as there are devices.
        settle_seconds: that a device stays with who got it, whoever wants it.
        turn_seconds: in which somebody may have one device more than others who want it.
    """

    device_ttl_seconds: float = 10.0
    lease_ttl_seconds: float = 30.0
    losses: int = 2
    leases_per_user: int | None = None
    settle_seconds: float = 2.0
    turn_seconds: float = 10.0
