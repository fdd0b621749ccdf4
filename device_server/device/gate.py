"""The device's own check that a caller still holds the device: fences only ever grow."""

from __future__ import annotations

import hmac
from collections.abc import Callable

from tilefarm.errors import LeaseError, SuspectError
from tilefarm.lease import ticket_of
from tilefarm.rpc.device_calls import Claim


class FenceGate:
    """Admits claims of the newest lease that the device has seen, and of newer ones.

    The tracker may think what it likes: a claim with a lower fence, or of an earlier life of this
    server, is refused here, so two drivers never run on one device. A claim that the tracker did
    not give, or gave to somebody else, has no ticket for it.

    Args:
        epoch: names this life of the device server.
        secret: that the device registered with.
        leased: hears the fence of every newer lease.
    """

    def __init__(
        self, epoch: str, secret: bytes, leased: Callable[[int], None] = lambda _: None
    ) -> None:
        self._epoch = epoch
        self._secret = secret
        self._leased = leased
        self._fence = 0
        self._lease_id = ""
        self._spoiled = ""

    @property
    def fence(self) -> int:
        """The highest fence so far."""
        return self._fence

    def admit(self, claim: Claim, user: str = "") -> None:
        """Let a user's claim pass.

        Raises:
            LeaseError: it is of another life of the server, its ticket is not the tracker's, or a
                newer lease was seen.
            SuspectError: what was measured under this lease may be wrong; see `spoil`.
        """
        if claim.epoch != self._epoch:
            raise LeaseError("the device server has started anew since the lease", "lease anew")
        ticket = ticket_of(
            self._secret,
            lease_id=claim.lease_id,
            fence=claim.fence,
            epoch=claim.epoch,
            user=user,
        )
        if not hmac.compare_digest(claim.ticket, ticket):
            raise LeaseError(
                f"lease {claim.lease_id!r} was not given by this device's tracker"
                f" to {user or 'this farm'}",
                "lease anew",
            )
        stale = claim.fence < self._fence
        stranger = claim.fence == self._fence and claim.lease_id != self._lease_id
        if not claim.lease_id or stale or stranger:
            raise LeaseError(
                f"fence {claim.fence} of lease {claim.lease_id!r} is out of date: the device has"
                f" seen {self._fence}",
                "lease anew",
            )
        if claim.fence > self._fence:
            self._spoiled = ""
            self._leased(claim.fence)
        self._fence, self._lease_id = claim.fence, claim.lease_id
        if self._spoiled:
            raise SuspectError(self._spoiled, "what was measured under this lease is not sure")

    def spoil(self, why: str) -> None:
        """The device was not right under the newest lease: nothing more is done under it.

        Whoever holds it hears why with every call: the answer that said so first may be lost.
        """
        self._spoiled = why
