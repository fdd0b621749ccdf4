"""What a tracker forgives, and how much one user may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilefarm.errors import BusyError
from tilefarm.plural import plural

_SHARE_RETRY_SECONDS: Final = 1.0


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


def enough(share: str, held: int) -> BusyError:
    """The refusal of somebody who holds as many leases as one may."""
    return BusyError(
        f"{share or 'this user'} holds {plural(held, 'lease')} already, the most that one may have"
        " here",
        "give one back, or ask who runs the farm for a higher `tilefarm tracker --leases-per-user`",
        _SHARE_RETRY_SECONDS,
    )
