"""Authentication of calls: who proves an identity whose role a method asks for is let in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tilefarm.clock import Clock
from tilefarm.errors import AccessError, ForbiddenError, TilefarmError
from tilefarm.plural import plural
from tilefarm.rpc.methods import Method
from tilefarm.trust.access import CertificateName, Identity
from tilefarm.trust.revoked import RevokedCertificates
from tilefarm.trust.tokens import TokenStore, no_token
from tilefarm.watch.audit import Audit, AuditEntry
from tilefarm.watch.rate_limit import RateLimit

_BEARER: Final = "Bearer "

LONGEST_PATH: Final = 200
"""Characters of a method that is none."""

LONGEST_SUBJECT: Final = 8192
"""Characters of what a call was about: the runs of one call."""

LONGEST_REASON: Final = 2000
"""Characters of why a call was refused."""

NEIGHBOUR: Final = Identity(user="", roles=frozenset())
"""Somebody on the same machine, who may do what harms nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One call as it arrives.

    Attributes:
        path: what is asked for.
        authorization: the metadata of that name.
        certificate: the caller's URI; empty if it has none, None if the server speaks no TLS.
        peer: the address of the connection.
        pem: the caller's certificate itself; empty if it has none.
    """

    path: str
    authorization: str
    certificate: str | None
    peer: str
    pem: bytes = b""


class Authentication:
    """Decides who may call what; whatever is not allowed by name is refused.

    Args:
        tokens: whose token is which.
        audit: gets refusals, in moderation, and what methods want to be remembered.
        clock: dates them.
        revoked: certificates that are refused.
    """

    def __init__(
        self,
        tokens: TokenStore,
        *,
        audit: Audit,
        clock: Clock,
        revoked: RevokedCertificates | None = None,
    ) -> None:
        self._tokens = tokens
        self._revoked = revoked
        self._audit = audit
        self._clock = clock
        self._strangers = RateLimit(clock)
        self._others = RateLimit(clock)

    def admit(self, method: Method[Any, Any] | None, arrival: Arrival) -> Identity:
        """Who calls, if they may; `method` is None if the server has none at that path.

        Raises:
            AccessError: nobody that is known here.
            CertificateError: somebody whose certificate was revoked.
            ForbiddenError: somebody whose role does not do that.
        """
        if method is not None and method.neighbours and arrival.certificate is None:
            return NEIGHBOUR
        identity: Identity | None = None
        try:
            identity = self._identity(arrival)
            allow(method, identity, arrival.path)
        except TilefarmError as error:
            self._note_refusal(method, arrival, identity, error.what)
            raise
        return identity

    def note(self, method: Method[Any, Any], arrival: Arrival, by: Identity, subject: str) -> None:
        """Remember a call that was let in."""
        self._note(method, arrival, by, subject=subject, allowed=True)

    def _identity(self, arrival: Arrival) -> Identity:
        if self._revoked is not None and arrival.pem:
            self._revoked.require_good(arrival.pem)
        if not arrival.authorization.startswith(_BEARER):
            raise no_token()
        holder = self._tokens.identity_of(arrival.authorization.removeprefix(_BEARER))
        return holder if arrival.certificate is None else certified(holder, arrival.certificate)

    def _note_refusal(
        self, method: Method[Any, Any] | None, arrival: Arrival, identity: Identity | None, why: str
    ) -> None:
        passed_over = (self._others if identity else self._strangers).passed_over()
        if passed_over is None:
            return
        if passed_over:
            why += f" ({plural(passed_over, 'refusal')} before it are not noted)"
        self._note(method, arrival, identity, allowed=False, why=why)

    def _note(
        self,
        method: Method[Any, Any] | None,
        arrival: Arrival,
        identity: Identity | None,
        *,
        subject: str = "",
        allowed: bool,
        why: str = "",
    ) -> None:
        self._audit(
            AuditEntry(
                at_seconds=self._clock.wall_seconds(),
                user=identity.user if identity else "",
                roles=",".join(sorted(r.value for r in identity.roles)) if identity else "",
                peer=arrival.peer,
                method=method.name if method else arrival.path[:LONGEST_PATH],
                subject=subject[:LONGEST_SUBJECT],
                allowed=allowed,
                why=why[-LONGEST_REASON:],
            )
        )


def certified(holder: Identity, uri: str) -> Identity:
    """The holder of a token, who also shows a certificate: both must speak of the same person.

    A farm's one secret names nobody; then the certificate alone says who calls.

    Raises:
        AccessError: the certificate names nobody, or somebody else.
    """
    try:
        named = CertificateName.of_uri(uri)
    except ValueError:
        raise AccessError(
            f"a certificate without a name of this farm ({uri or 'none'})",
            "--tls with a folder that `tilefarm pki issue` made",
        ) from None
    roles = holder.roles & {named.role}
    if not roles or holder.user not in ("", named.name):
        raise AccessError(
            f"the token is that of {holder}, the certificate that of {named}",
            "use the token and the certificate of one person",
        )
    return Identity(user=named.name, roles=roles)


def allow(method: Method[Any, Any] | None, identity: Identity, path: str) -> None:
    """Nothing if somebody's role does that.

    Raises:
        ForbiddenError: it does not, or nobody's does.
    """
    if method is None:
        raise ForbiddenError(f"{path} is no method of this server", "install the same version")
    if not method.roles & identity.roles:
        needed = " or ".join(sorted(role.value for role in method.roles))
        raise ForbiddenError(
            f"{method.name} is for the role {needed}, not for {identity}",
            f"ask who runs the farm for `tilefarm pki token --role {needed.split(' ')[0]}`",
        )
