"""The device's own check that a caller still holds the device: fences only ever grow."""

from __future__ import annotations

from tilefarm.calls import Claim
from tilefarm.errors import LeaseError


class FenceGate:
    """Admits claims of the newest lease that the device has seen, and of newer ones.

    The tracker may think what it likes: a claim with a lower fence, or of an earlier life of this
    server, is refused here, so two drivers never run on one device.

    Args:
        epoch: names this life of the device server.
    """

    def __init__(self, epoch: str) -> None:
        self._epoch = epoch
        self._fence = 0
        self._lease_id = ""

    @property
    def fence(self) -> int:
        """The highest fence so far."""
        return self._fence

    def admit(self, claim: Claim) -> None:
        """Let a claim pass.

        Raises:
            LeaseError: it is of another life of the server, or a newer lease was seen.
        """
        if claim.epoch != self._epoch:
            raise LeaseError("the device server has started anew since the lease", "lease anew")
        stale = claim.fence < self._fence
        stranger = claim.fence == self._fence and claim.lease_id != self._lease_id
        if not claim.lease_id or stale or stranger:
            raise LeaseError(
                f"fence {claim.fence} of lease {claim.lease_id!r} is out of date: the device has"
                f" seen {self._fence}",
                "lease anew",
            )
        self._fence, self._lease_id = claim.fence, claim.lease_id
