"""The device's own check that a caller still holds the device: fences only ever grow.

A lease ends here when a newer one is seen, or when the tracker says so, whichever comes first; then
all that goes on under it ends.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Final

from tilefarm.errors import LeaseError, SuspectError
from tilefarm.lease import ticket_of
from tilefarm.rpc.device_calls import Claim

from device_server.tenancy import Tenancy

_TAKEN: Final = "it was given back or has expired"


class FenceGate:
    """Admits claims of the newest lease that the device has seen, and of newer ones.

    The tracker may think what it likes: a claim with a lower fence, or of an earlier life of this
    server, is refused here, so two drivers never run on one device. A claim that the tracker did
    not give, or gave to somebody else, has no ticket for it.

    Args:
        epoch: names this life of the device server.
        secret: that the device registered with.
        leased: hears the fence of every newer lease.
        spoiled: hears that the device was not right under the newest one.
    """

    def __init__(
        self,
        epoch: str,
        secret: bytes,
        *,
        leased: Callable[[int], None] = lambda _: None,
        spoiled: Callable[[], None] = lambda: None,
    ) -> None:
        self._epoch = epoch
        self._secret = secret
        self._leased = leased
        self._note_spoiled = spoiled
        self._tenancy = Tenancy()
        self._over = 0
        self._spoiled: SuspectError | None = None
        self._asked: tuple[str, int, str] | None = None
        self._ticket = b""

    @property
    def fence(self) -> int:
        """The highest fence so far."""
        return self._tenancy.fence

    def admit(self, claim: Claim, user: str = "") -> Tenancy:
        """Let a user's claim pass: under which lease it is. A newer one ends the one before.

        Raises:
            LeaseError: it is of another life of the server, its ticket is not the tracker's, a
                newer lease was seen, or the tracker has said that it is over.
            SuspectError: what was measured under this lease may be wrong; see `spoil`.
        """
        if claim.epoch != self._epoch:
            raise LeaseError("the device server has started anew since the lease", "lease anew")
        if not hmac.compare_digest(claim.ticket, self._ticket_of(claim, user)):
            raise LeaseError(
                f"lease {claim.lease_id!r} was not given by this device's tracker"
                f" to {user or 'this farm'}",
                "lease anew",
            )
        newest = self._tenancy
        stale = claim.fence < newest.fence
        stranger = claim.fence == newest.fence and claim.lease_id != newest.lease
        if not claim.lease_id or stale or stranger:
            raise LeaseError(
                f"fence {claim.fence} of lease {claim.lease_id!r} is out of date: the device has"
                f" seen {newest.fence}",
                "lease anew",
            )
        if claim.fence > newest.fence:
            newest.end("a newer lease has begun")
            self._tenancy = Tenancy(lease=claim.lease_id, fence=claim.fence, user=user)
            self._spoiled = None
            self._leased(claim.fence)
        if claim.fence <= self._over:
            self._tenancy.end(_TAKEN)
        self._tenancy.require()
        if self._spoiled:
            raise SuspectError(*self._spoiled.args)
        return self._tenancy

    def _ticket_of(self, claim: Claim, user: str) -> bytes:
        """What the tracker gives with that lease; the last one is remembered, for runs in a row."""
        lease = claim.lease_id, claim.fence, user
        if lease != self._asked:
            self._asked = lease
            self._ticket = ticket_of(
                self._secret,
                lease_id=claim.lease_id,
                fence=claim.fence,
                epoch=self._epoch,
                user=user,
            )
        return self._ticket

    def newest_of(self, user: str) -> Tenancy:
        """The lease that the device is under, for one who asks for something without a claim.

        Raises:
            LeaseError: it is over, or that of another user.
        """
        self._tenancy.require()
        if self._tenancy.user != user:
            raise LeaseError(f"{user or 'this farm'} has no lease of the device", "lease anew")
        return self._tenancy

    def end(self, fence: int, why: str = _TAKEN) -> None:
        """No lease up to this fence lives any more, by the tracker's word or for want of one."""
        self._over = max(self._over, fence)
        if 0 < self._tenancy.fence <= self._over:
            self._tenancy.end(why)

    def spoil(self, why: SuspectError) -> None:
        """The device was not right under the newest lease: nothing more is done under it.

        Whoever holds it hears why with every call: the answer that said so first may be lost.
        """
        self._spoiled = why
        self._note_spoiled()
